// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/mesh_program.h"

#include "compiler/context/partition_for_mesh.h"

namespace einc {
namespace {

// The place in a file that a node's location names.
Span span_of(const SourceMap& sources, const SourceLocation& at) {
  for (size_t i = 1; i <= sources.file_count() && at.line > 0; ++i) {
    const auto id = static_cast<FileId>(i);
    const SourceFile& file = sources.file(id);
    if (file.name() != at.file.str() || at.line > file.line_count()) continue;
    const uint32_t start = file.line_start(at.line), length = static_cast<uint32_t>(file.line_text(at.line).size());
    uint32_t begin = 0;
    while (begin < length && file.locate(start + begin).column < at.column) ++begin;
    uint32_t end = begin;
    while (end < length && file.locate(start + end).column < at.end_column) ++end;
    return {id, start + begin, start + end};
  }
  return {};
}

}  // namespace

std::optional<Partitioned> partition_program(Compilation& compilation, const Bindings& dims) {
  if (!compilation.graph || compilation.graph->mesh.empty()) return std::nullopt;
  const Graph& graph = *compilation.graph;
  auto made = partition_for_mesh(graph, dims);
  if (auto* partitioned = std::get_if<Partitioned>(&made)) return std::move(*partitioned);
  const NoPartition& problem = std::get<NoPartition>(made);
  const Node& node = graph[problem.node];
  compilation.diagnostics
      .report(Code::no_partition, span_of(compilation.sources, node.origin.location), to_string(node.op),
              graph.mesh.axes[static_cast<size_t>(problem.mesh_axis)].name, problem.why)
      .hint("split what reaches it over another axis, or not at all");
  return std::nullopt;
}

}  // namespace einc
