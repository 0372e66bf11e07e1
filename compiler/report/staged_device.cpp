// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/staged_device.h"

#include "compiler/cost/op_cost.h"

namespace einc {

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

Rational StagedDevice::flops(int stage) const {
  const Graph& graph = cut.stages[static_cast<size_t>(stage)].local.graph;
  const Sizes sizes(graph);
  const std::vector<bool> constant = constant_nodes(graph), of_weights = of_weights_alone(graph);
  Rational all(0);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (constant[i] || is_collective(graph.nodes[i].op)) continue;
    const Poly one = flop_cost(graph, sizes, NodeId{i}).flops;
    const bool once = of_weights[i] || graph.nodes[i].origin.phase == Phase::optimizer;
    all = all + one.evaluate(dims).value() * Rational(once ? 1 : microbatches);
  }
  return all;
}

std::optional<StagedDevice> staged_device(const Partitioned& partitioned, const Bindings& given) {
  StagedDevice staged;
  const auto micro = microbatch_dims(partitioned.graph, given);
  const BindResult bound = partitioned.graph.dims.bind(micro);
  if (!bound.ok() || !bound.unset.empty()) return std::nullopt;
  auto made = localize(partitioned);
  auto* local = std::get_if<Localized>(&made);
  if (!local) return std::nullopt;
  staged.given = micro, staged.dims = bound.values;
  staged.microbatches = partitioned.graph.mesh.stages.microbatches.evaluate_integer(bound.values).value_or(1);
  staged.whole = std::move(*local);
  staged.places = place_stages(staged.whole.graph, micro);
  staged.cut = cut_stages(staged.whole, staged.places);
  Rational most(-1);
  for (int s = 0; s < staged.stages(); ++s)
    if (const Rational flops = staged.flops(s); most < flops) most = flops, staged.shown = s;
  return staged;
}

}  // namespace einc
