// SPDX-License-Identifier: Apache-2.0
#include "compiler/lsp/analysis.h"

#include <algorithm>
#include <utility>

#include "compiler/elaborate/elaborate.h"
#include "dsl/parser.h"

namespace einc {
namespace {

constexpr size_t kMaxTypes = 4;
constexpr size_t kMaxPathNames = 6;

}  // namespace

std::unique_ptr<Analysis> analyse(const std::string& path, const std::string& text) {
  auto out = std::make_unique<Analysis>();
  out->file = out->sources.add(path, text, out->diagnostics);
  if (!out->file) return out;
  Diagnostics unheard;
  out->program = parse(out->sources, *out->file, unheard);
  out->symbols = std::make_unique<Symbols>(out->sources, out->program);
  return out;
}

void elaborate_now(Analysis& analysis) {
  if (std::exchange(analysis.is_elaborated, true) || !analysis.file) return;
  ElaborateOptions options;
  options.unused_names = UnusedNames::reported;
  options.bound = [&](Span name, NodeId value, const std::string& type) {
    if (name.file != *analysis.file) return;
    Analysis::BoundValue& known = analysis.bound[name.begin];
    known.last = value;
    if (std::find(known.types.begin(), known.types.end(), type) == known.types.end() && known.types.size() < kMaxTypes)
      known.types.push_back(type);
  };
  analysis.graph = elaborate(analysis.sources, *analysis.file, options, analysis.diagnostics);
}

const std::vector<std::string>& types_at(const Analysis& analysis, uint32_t begin) {
  static const std::vector<std::string> kNone;
  const auto found = analysis.bound.find(begin);
  return found == analysis.bound.end() ? kNone : found->second.types;
}

std::string gradient_path(const Analysis& analysis, std::string_view name, uint32_t begin) {
  const auto found = analysis.bound.find(begin);
  if (!analysis.graph || !analysis.graph->loss.valid() || found == analysis.bound.end()) return "";
  const Graph& graph = *analysis.graph;
  const uint32_t from = found->second.last.index;
  if (from >= graph.size() || graph.nodes[from].origin.label.str() != name) return "";
  // Operands precede users: one sweep finds for each node the first operand through which it depends on the value.
  std::vector<uint32_t> through(graph.size(), UINT32_MAX);
  through[from] = from;
  const uint32_t loss = graph.loss.index;
  for (uint32_t i = from + 1; i <= loss && i < graph.size(); ++i)
    for (const NodeId operand : graph.nodes[i].operands)
      if (through[operand.index] != UINT32_MAX && graph.nodes[i].op != Op::stop_gradient) {
        through[i] = operand.index;
        break;
      }
  if (loss >= graph.size() || through[loss] == UINT32_MAX) return "";
  std::vector<std::string> names;
  for (uint32_t at = loss; at != from; at = through[at])
    if (const std::string& label = graph.nodes[at].origin.label.str(); !label.empty() && (names.empty() || names.back() != label))
      names.push_back(label);
  std::reverse(names.begin(), names.end());
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) {
    if (names.size() > kMaxPathNames && i == kMaxPathNames / 2) {
      text += ", ...";
      i = names.size() - kMaxPathNames / 2;
    }
    text += (text.empty() ? "" : ", ") + names[i];
  }
  return text.empty() ? "the loss itself" : text;
}

}  // namespace einc
