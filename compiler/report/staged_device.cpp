// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/staged_device.h"

#include <algorithm>

#include "compiler/cost/op_cost.h"
#include "compiler/partition/stage_meetings.h"

namespace einc {
namespace {

// Of a step. A collective's own sums are the links' time, as in reports without stages; those over microbatches are the stage's, and so are
// their means.
Rational flops_of(const std::vector<StageProgram>& rounds, const Bindings& dims, int64_t microbatches) {
  Rational all(0);
  for (size_t round = 0; round < rounds.size(); ++round) {
    const Graph& graph = rounds[round].local.graph;
    const Sizes sizes(graph);
    const std::vector<bool> constant = constant_nodes(graph);
    const Rational often(round == kMicrobatchRound ? microbatches : 1);
    for (uint32_t i = 0; i < graph.size(); ++i) {
      if (constant[i] || (is_collective(graph.nodes[i].op) && !is_microbatch_sum(graph.nodes[i]))) continue;
      const bool adds = is_microbatch_sum(graph.nodes[i]);
      const Poly& flops = adds ? sizes.count(NodeId{i}) : flop_cost(graph, sizes, NodeId{i}).flops;
      all = all + flops.evaluate(dims).value() * often;
    }
    for (const auto& [whole, sum] : rounds[round].sums) all = all + sizes.count(sum).evaluate(dims).value();
  }
  return all;
}

}  // namespace

Rational StagedDevice::bytes_of(NodeId of_whole) const {
  const Type& type = whole.graph.type(of_whole);
  Rational bytes(einc::bytes_of(type.dtype == DType::real ? DType::f32 : type.dtype));
  for (const Axis& axis : type.axes) bytes = bytes * axis.size.evaluate(dims).value();
  return bytes;
}

bool StagedDevice::has(int stage, NodeId of_whole) const {
  const int place = places.of[of_whole.index];
  const auto reads = [&](const StageProgram& round) { return round.at[of_whole.index].valid(); };
  return place == stage || (place == kEveryStage && std::ranges::any_of(cut.stages[static_cast<size_t>(stage)], reads));
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
  staged.given = micro, staged.dims = bound.values;
  staged.microbatches = partitioned.graph.mesh.stages.microbatches.evaluate_integer(bound.values).value_or(1);
  staged.whole = localize(partitioned);
  if (!staged.whole.gradients.empty()) staged.whole.stores = DeviceUpdates::in_place;
  const Graph& whole = staged.whole.graph;
  staged.places = firsts.empty() ? place_stages(whole, whole.mesh.stages.loop, stages_of(whole, micro))
                                 : place_stages(whole, whole.mesh.stages.loop, firsts);
  staged.cut = cut_stages(staged.whole, staged.places);
  meet_neighbours(staged.cut, staged.whole, staged.places, staged.microbatches);
  for (const auto& rounds : staged.cut.stages) staged.flops.push_back(flops_of(rounds, staged.dims, staged.microbatches));
  staged.shown = static_cast<int>(std::ranges::max_element(staged.flops) - staged.flops.begin());
  return staged;
}

}  // namespace einc
