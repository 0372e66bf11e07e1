// SPDX-License-Identifier: Apache-2.0
// What a training step takes when the backward makes some of the values again that the forward saves: the ground that memory_limit
// searches. Places and bytes come from the plan of buffers, cost from remade_values.
#pragma once
#include <limits>
#include <span>
#include <unordered_map>

#include "compiler/fuse/kept_sums.h"
#include "compiler/fuse/memory_limit.h"
#include "compiler/fuse/remade_values.h"
#include "compiler/fuse/schedule_passes.h"

namespace einc {

class RemadeStep {
 public:
  static constexpr int64_t kTooMuch = std::numeric_limits<int64_t>::max();

  // `rest`: the passes that a choice goes through. The forming outlives it.
  RemadeStep(const Forming& forming, std::span<const SchedulePass> rest);

  const Graph& graph() const { return graph_; }
  int64_t bytes_as_is() const { return all_bytes(whole_, whole_.at); }
  // Saved values that may be made again, and values that only the forward reads: of those others could be made, if they were saved.
  const std::vector<NodeId>& candidates() const { return candidates_; }
  const std::vector<NodeId>& stored() const { return stored_; }
  int64_t bytes(NodeId id) const { return values_.bytes(id); }

  // From now on these are saved besides.
  void save(const std::vector<NodeId>& more);
  // FLOPs that a choice adds, as Recomputation says.
  double cost(const std::vector<NodeId>& chosen) const { return values_.cost(chosen); }
  // Of the plan, or of a device; too much where another order of sums would change bits. Each choice is planned once.
  int64_t bytes_with(const std::vector<NodeId>& chosen);
  RemadeValues::Copies copies(const std::vector<NodeId>& chosen) const { return values_.copies(chosen); }

 private:
  Forming formed(const Graph& graph, const RemadeValues::Copies& copies) const;
  int64_t plan_with(const std::vector<NodeId>& chosen) const;
  int64_t all_bytes(const Forming& made, std::span<const NodeId> at) const;
  std::vector<NodeId> given() const;
  RemadeValues::Places places();
  void find_candidates();

  const Forming& forming_;
  const Graph& graph_;
  const std::span<const SchedulePass> rest_;
  const Scheduling options_;
  const Forming whole_;  // the step as it is
  const BoundGraph bound_;
  const KeptSums sums_;
  RemadeValues values_;
  const std::vector<bool> saved_;  // as is
  std::vector<NodeId> candidates_, stored_;
  std::unordered_map<std::vector<bool>, int64_t> planned_;  // bytes, by RemadeValues::made_and_chosen
};

}  // namespace einc
