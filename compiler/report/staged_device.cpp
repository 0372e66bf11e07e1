// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/staged_device.h"

#include <algorithm>

#include "compiler/cost/op_cost.h"

namespace einc {
namespace {

// Of a step. A collective's own sums are the links' time, as in reports without stages.
Rational flops_of(const StageProgram& stage, const Bindings& dims, int64_t microbatches) {
  const Graph& graph = stage.local.graph;
  const Sizes sizes(graph);
  const std::vector<bool> constant = constant_nodes(graph), of_weights = of_weights_alone(graph);
  Rational all(0);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (constant[i] || is_collective(graph.nodes[i].op)) continue;
    const bool once = of_weights[i] || graph.nodes[i].origin.phase == Phase::optimizer;
    all = all + flop_cost(graph, sizes, NodeId{i}).flops.evaluate(dims).value() * Rational(once ? 1 : microbatches);
  }
  return all;
}

}  // namespace

bool StagedDevice::moves_once(NodeId of_whole) const {
  const Node& node = whole.graph[of_whole];
  const Mesh& mesh = whole.graph.mesh;
  const bool puts_together = node.op == Op::all_gather && !mesh.params.empty();
  const bool spreads = is_collective(node.op) && !(mesh.gradients.empty() && mesh.params.empty());
  if (node.origin.phase == Phase::optimizer) return true;
  return places.of_weights[of_whole.index] ? !puts_together : places.for_update[of_whole.index] && !spreads;
}

Rational StagedDevice::bytes_of(NodeId of_whole) const {
  const Type& type = whole.graph.type(of_whole);
  Rational bytes(einc::bytes_of(type.dtype == DType::real ? DType::f32 : type.dtype));
  for (const Axis& axis : type.axes) bytes = bytes * axis.size.evaluate(dims).value();
  return bytes;
}

bool StagedDevice::has(int stage, NodeId of_whole) const {
  const int place = places.of[of_whole.index];
  return place == stage || (place == kEveryStage && cut.stages[static_cast<size_t>(stage)].at[of_whole.index].valid());
}

Rational StagedDevice::declared_bytes(int stage, const std::function<bool(const Node&)>& is_one) const {
  Rational bytes(0);
  for (const DeviceValue& value : whole.declared)
    if (is_one(whole.graph[value.node]) && has(stage, value.node)) bytes = bytes + bytes_of(value.node);
  return bytes;
}

std::optional<StagedDevice> staged_device(const Partitioned& partitioned, const Bindings& given, std::span<const int64_t> firsts) {
  StagedDevice staged;
  const Bindings micro = microbatch_dims(partitioned.graph, given);
  const BindResult bound = partitioned.graph.dims.bind(micro);
  if (!bound.ok() || !bound.unset.empty()) return std::nullopt;
  auto made = localize(partitioned);
  auto* local = std::get_if<Localized>(&made);
  if (!local) return std::nullopt;
  staged.given = micro, staged.dims = bound.values;
  staged.microbatches = partitioned.graph.mesh.stages.microbatches.evaluate_integer(bound.values).value_or(1);
  staged.whole = std::move(*local);
  const Graph& whole = staged.whole.graph;
  staged.places = firsts.empty() ? place_stages(whole, whole.mesh.stages.loop, stages_of(whole, micro))
                                 : place_stages(whole, whole.mesh.stages.loop, firsts);
  staged.cut = cut_stages(staged.whole, staged.places);
  for (const StageProgram& stage : staged.cut.stages) staged.flops.push_back(flops_of(stage, staged.dims, staged.microbatches));
  staged.shown = static_cast<int>(std::ranges::max_element(staged.flops) - staged.flops.begin());
  return staged;
}

}  // namespace einc
