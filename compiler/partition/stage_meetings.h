// SPDX-License-Identifier: Apache-2.0
// What a stage's program does with its neighbours, and with its own other microbatches, as ops that devices meet in: so that no kernel
// holds both what leads to one and what follows from it, and values have their places. Both are shifts along the mesh axis of the stages:
// - by 1: a value that goes up and what comes back for it, an activation and its gradient. What stands before it is a forward, what waits
//   for it a backward.
// - by 0: a sum over microbatches, which lasts from the first to the update.
#pragma once
#include <optional>

#include "compiler/partition/cut_stages.h"

namespace einc {

inline constexpr int64_t kSumOfMicrobatches = 0, kRoundTrip = 1;

// Whether a sum over microbatches is what a node of a stage's program makes.
inline bool is_microbatch_sum(const Node& node) {
  const auto* shift = std::get_if<ShiftAttr>(&node.attr);
  return node.op == Op::shift && shift->mesh >= 0 && shift->by == kSumOfMicrobatches;
}

inline bool is_round_trip(const Node& node, const Mesh& mesh) {
  const auto* shift = std::get_if<ShiftAttr>(&node.attr);
  return node.op == Op::shift && mesh.stages.any() && shift->mesh == mesh.stages.over && shift->by == kRoundTrip;
}

// Changes the programs of microbatches, and says of all what they have from earlier rounds. Not more than once. The node, of the whole's
// graph, that comes back for nothing of its sizes, if there is one.
std::optional<NodeId> meet_neighbours(StagePrograms& programs, const Localized& whole, const StagePlaces& places, int64_t microbatches);

}  // namespace einc
