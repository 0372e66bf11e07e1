// SPDX-License-Identifier: Apache-2.0
// What a stage's program does with its neighbours, and with its own other microbatches.
// - A value that goes up and what comes back for it, an activation and its gradient, are a shift by 1 along the mesh axis of the stages, an
//   op that devices meet in: so that no kernel holds both what leads to it and what follows from it. What stands before it is a forward,
//   what waits for it a backward. Its first operand is what went up for it, the others what else goes up and has to be made before.
// - A sum over microbatches lasts from the first to the update. It is a state that each microbatch adds its term to: in the kernel that
//   makes the term, which need not be in memory then. A term that a collective makes is added when that is over: a shift by 0. Of largest
//   magnitudes the largest is taken instead.
#pragma once
#include <optional>

#include "compiler/partition/cut_stages.h"

namespace einc {

inline constexpr int64_t kSumOfMicrobatches = 0, kRoundTrip = 1;

// Whether a node of a stage's program is a sum over microbatches whose term a collective makes.
inline bool is_microbatch_sum(const Node& node) {
  const auto* shift = std::get_if<ShiftAttr>(&node.attr);
  return node.op == Op::shift && shift->mesh >= 0 && shift->by == kSumOfMicrobatches;
}

// Of a node that takes a term of each microbatch.
inline bool keeps_largest(const Node& node) { return is_map(node, MapFn::maximum); }

inline bool is_round_trip(const Node& node, const Mesh& mesh) {
  const auto* shift = std::get_if<ShiftAttr>(&node.attr);
  return node.op == Op::shift && mesh.stages.any() && shift->mesh == mesh.stages.over && shift->by == kRoundTrip;
}

// Changes the programs of microbatches, and says of all what they have from earlier rounds. Not more than once. The node, of the whole's
// graph, that comes back for nothing of its sizes, if there is one.
std::optional<NodeId> meet_neighbours(StagePrograms& programs, const Localized& whole, const StagePlaces& places, int64_t microbatches);

}  // namespace einc
