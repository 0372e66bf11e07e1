// SPDX-License-Identifier: Apache-2.0
// From a graph and values for its dims to kernels and a place for every buffer: what machine code is made from, and what
// the report states memory by.
#pragma once
#include "compiler/fuse/schedule_passes.h"

namespace einc {

struct FormedGraph {
  std::unique_ptr<const Graph> own;  // instead of the graph given, where the target needs another
  BoundGraph bound;
  KernelList list;
  BufferPlan plan;
  std::vector<NodeId> roots{};  // values read after the last kernel
  std::vector<NodeId> at{};     // per node of the graph given, its place in the graph formed of; empty where that is the same
  Recomputation recomputation{};

  NodeId place_of(NodeId given) const { return at.empty() ? given : at[given.index]; }
  FormedView view() const { return {bound, list, plan, at}; }
};

// Runs the target's passes. The graph outlives the result. Throws RuntimeFailure when the dims do not bind; sizes fit (sizes_fit).
FormedGraph form_graph(const Graph& graph, const Bindings& given, RunMode mode, const Scheduling& options = Scheduling::all,
                       const ScheduleTarget& target = processor_target());

// The same under a limit that counts what a run takes beside its plan, which depends on the kernels (target.besides).
FormedGraph form_within_limit(const Graph& graph, const Bindings& given, RunMode mode, const Scheduling& options,
                              const ScheduleTarget& target);

// Whether every value's bytes stay below 2^60 for these dims, so that sums of them are exact.
bool sizes_fit(const Graph& graph, const Bindings& values);

}  // namespace einc
