// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/placed_values.h"

#include <algorithm>

#include "compiler/cost/memory.h"

namespace einc {
namespace {

constexpr uint32_t kNever = UINT32_MAX;

// By node of the graph that kernels are formed of: the kernels that make it and that read it last.
struct Lives {
  std::vector<uint32_t> made, last;
};

Lives lives_of(const FormedGraph& formed) {
  const size_t count = formed.plan.buffers.size();
  Lives lives{std::vector<uint32_t>(count, kNever), std::vector<uint32_t>(count, 0)};
  const auto& kernels = formed.list.kernels;
  for (uint32_t k = 0; k < kernels.size(); ++k) {
    for (const NodeId id : kernels[k].buffers) {
      if (!id.valid()) continue;
      lives.made[id.index] = std::min(lives.made[id.index], k);
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
  double kept = 0, beside = 0, at_turn = 0, at_turn_in_use = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const NodeId at = formed.place_of(NodeId{i});
    if (!at.valid() || !formed.list.in_memory[at.index]) continue;
    placed.in_memory[i] = true;
    placed.again[i] = !formed.bound.twice.empty() && formed.bound.twice[at.index];
    const BufferPlan::Buffer& buffer = plan.buffers[at.index];
    const bool in_arena = buffer.place == BufferPlace::arena || buffer.place == BufferPlace::shared;
    if (!in_arena || counted[at.index] || lives.made[at.index] == kNever) continue;
    counted[at.index] = true;
    const auto bytes = static_cast<double>(buffer.bytes);
    const bool at_fullest = lives.made[at.index] <= plan.fullest.launch && plan.fullest.launch <= lives.last[at.index];
    // A gradient that a launch of the forward makes is read as the backward begins: how many iterations there are does not matter to it.
    const bool is_at_turn = plan.saved[at.index] && formed.bound[at].origin.phase != Phase::forward;
    if (is_at_turn) at_turn += bytes, at_turn_in_use += at_fullest ? bytes : 0;
    if (plan.saved[at.index] && !is_at_turn)
      placed.kept[i] = true, kept += bytes;
    else if (at_fullest)
      placed.beside[i] = true, beside += bytes;
  }
  if (kept > 0) placed.kept_scale = (static_cast<double>(plan.saved_bytes) - at_turn) / kept;
  if (beside > 0) placed.beside_scale = (static_cast<double>(step.memory.workspace + step.memory.fragmentation) + at_turn_in_use) / beside;
  return placed;
}

}  // namespace einc
