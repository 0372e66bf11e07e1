// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/sample_programs.h"

#include <fmt/format.h>

#include "compiler/cost/sizes.h"
#include "compiler/ir/examples.h"
#include "runtime/base/check.h"

namespace einc {

Name mesh_dim(size_t axis) { return Name(fmt::format("mesh axis {}", axis)); }
Name stages_dim() { return Name("mesh axis of stages"); }

SamplePrograms::SamplePrograms(const Compilation& whole, const PipelineOptions& options, const Bindings& dims, std::vector<SplitName> names)
    : whole_(whole),
      options_(options),
      dims_(dims),
      few_(whole, options, dims),
      names_(std::move(names)),
      batch_(examples_dim(*whole.elaborated)),
      graphs_(3 * of_stages(kMostOfStage + 1)) {}

Bindings SamplePrograms::few_dims(size_t index) const {
  return index < count() ? few_.samples()[index] : few_.folding(static_cast<int64_t>(index - folding()) + 1);
}

Graph& SamplePrograms::sample(Micro micro, size_t index) {
  std::unique_ptr<Graph>& kept = graphs_[static_cast<size_t>(micro) * of_stages(kMostOfStage + 1) + index];
  if (kept) return *kept;
  PipelineOptions options = options_;
  if (micro != Micro::whole) options.training.micro_batches = 2;  // the mean's divisor: a number, whatever it is
  if (micro == Micro::gather) options.training.gradients = GradientUse::gather;
  Compilation made = compile_again(whole_, options, few_dims(index));
  EINC_CHECK(made.graph.has_value(), "a program that compiles does not with other iterations");
  kept = std::make_unique<Graph>(std::move(*made.graph));
  for (size_t m = 0; m < kMaxWayAxes; ++m) kept->dims.declare_free(mesh_dim(m));
  kept->dims.declare_free(stages_dim());
  return *kept;
}

const Graph& SamplePrograms::graph(Micro micro, size_t index, const MeshWay& way) {
  Graph& graph = sample(micro, index);
  set_mesh(graph, way, names_);
  return graph;
}

void set_mesh(Graph& graph, const MeshWay& way, const std::vector<SplitName>& names) {
  graph.mesh = {};
  const int first = way.stages ? 1 : 0;
  if (way.stages) {
    graph.mesh.axes.push_back({Name(way.stages->name), Poly::dim(stages_dim())});
    graph.mesh.stages = {0, way.stages->loop, Poly(way.micro_batches)};
  }
  for (size_t m = 0; m < way.axes.size(); ++m) graph.mesh.axes.push_back({Name(way.axes[m].name), Poly::dim(mesh_dim(m))});
  for (const SplitName& name : names) {
    AxisList over;
    for (int m = 0; m < static_cast<int>(way.axes.size()); ++m) {
      const WayAxis& axis = way.axes[static_cast<size_t>(m)];
      if (std::ranges::find(axis.split, name.name) != axis.split.end()) over.push_back(first + m);
    }
    if (over.empty()) continue;
    for (const SplitPlace& place : name.places) graph.mesh.requests.push_back({place.declared, place.path, place.axis, over});
  }
  for (int m = 0; m < static_cast<int>(way.axes.size()); ++m)
    if (way.axes[static_cast<size_t>(m)].keys) graph.mesh.keys.push_back(first + m);
  AxisList along;
  for (int m = 0; m < static_cast<int>(way.axes.size()); ++m)
    if (way.axes[static_cast<size_t>(m)].spreads) along.push_back(first + m);
  if (way.spread == Spread::states) graph.mesh.states = along;
  if (way.spread == Spread::gradients) graph.mesh.gradients = along;
  if (way.spread == Spread::params) graph.mesh.params = along;
}

namespace {

double bytes_stored(const Graph& graph, const Bindings& dims) {
  const Sizes sizes(graph);
  double bytes = 0;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (graph.nodes[i].op == Op::param || graph.nodes[i].op == Op::state) bytes += sizes.bytes(NodeId{i}).to_double(dims).value_or(0);
  return bytes;
}

}  // namespace

SamplePrograms::SamplePrograms(const SamplePrograms& other)
    : whole_(other.whole_),
      options_(other.options_),
      dims_(other.dims_),
      few_(other.few_),
      names_(other.names_),
      batch_(other.batch_),
      graphs_(other.graphs_.size()) {}

double SamplePrograms::stored_bytes() const { return bytes_stored(*whole_.graph, dims_); }

double SamplePrograms::stored_bytes(size_t index) {
  const Graph& graph = sample(Micro::whole, index);
  return bytes_stored(graph, graph.dims.bind(dims(index, MeshWay{})).values);
}

Bindings SamplePrograms::dims(size_t sample, const MeshWay& way) const {
  Bindings dims = few_dims(sample);
  if (!batch_.empty()) dims[batch_] = way.stages ? batch_size() : batch_size() / way.micro_batches;
  for (size_t m = 0; m < kMaxWayAxes; ++m) dims[mesh_dim(m)] = m < way.axes.size() ? way.axes[m].size : 1;
  dims[stages_dim()] = way.stages ? way.stages->count : 1;
  return dims;
}

}  // namespace einc
