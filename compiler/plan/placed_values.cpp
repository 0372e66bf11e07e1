// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/placed_values.h"

#include "compiler/cost/memory.h"

namespace einc {
namespace {

constexpr uint32_t kNever = UINT32_MAX;

// By node of the graph that kernels are formed of: the kernels that make it and that read it last, and whether the backward reads it.
struct Lives {
  std::vector<uint32_t> made, last;
  std::vector<bool> read_later;
};

Lives lives_of(const FormedGraph& formed) {
  const size_t count = formed.plan.buffers.size();
  Lives lives{std::vector<uint32_t>(count, kNever), std::vector<uint32_t>(count, 0), std::vector<bool>(count, false)};
  const auto& kernels = formed.list.kernels;
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    const auto& members = kernels[k].group.members;
    const bool backward = !members.empty() && formed.bound[members.back()].origin.phase == Phase::backward;
    for (const NodeId id : kernels[k].buffers) {
      if (!id.valid()) continue;
      if (lives.made[id.index] == kNever)
        lives.made[id.index] = k;
      else if (backward)
        lives.read_later[id.index] = true;
      lives.last[id.index] = k;
    }
  }
  return lives;
}

}  // namespace

PlacedValues placed_values(const Graph& graph, const PlannedStep& step) {
  const FormedGraph& formed = *step.formed;
  const Lives lives = lives_of(formed);
  const BufferPlan& plan = formed.plan;
  PlacedValues placed;
  placed.in_memory.resize(graph.size()), placed.kept.resize(graph.size()), placed.beside.resize(graph.size());
  placed.again.resize(graph.size());
  std::vector<bool> counted(plan.buffers.size(), false);
  double kept = 0, beside = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const NodeId at = formed.place_of(NodeId{i});
    if (!at.valid() || !formed.list.in_memory[at.index]) continue;
    placed.in_memory[i] = true;
    placed.again[i] = !formed.bound.twice.empty() && formed.bound.twice[at.index];
    const BufferPlan::Buffer& buffer = plan.buffers[at.index];
    if (buffer.place != BufferPlace::arena || counted[at.index] || lives.made[at.index] == kNever) continue;
    counted[at.index] = true;
    const Phase phase = formed.bound[at].origin.phase;
    const bool of_param = param_behind(graph, NodeId{i}).valid();
    if (phase == Phase::forward && lives.read_later[at.index] && !of_param) {
      placed.kept[i] = true;
      kept += static_cast<double>(buffer.bytes);
    } else if (lives.made[at.index] <= plan.fullest.launch && plan.fullest.launch <= lives.last[at.index]) {
      placed.beside[i] = true;
      beside += static_cast<double>(buffer.bytes);
    }
  }
  if (kept > 0) placed.kept_scale = static_cast<double>(plan.saved_bytes) / kept;
  if (beside > 0) placed.beside_scale = static_cast<double>(step.memory.workspace + step.memory.fragmentation) / beside;
  return placed;
}

}  // namespace einc
