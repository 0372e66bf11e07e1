// SPDX-License-Identifier: Apache-2.0
// Kernels and places of buffers as they were formed, whoever holds them, and what a run takes beside that plan.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"
#include "runtime/base/collective.h"

namespace einc {

struct FormedView {
  const BoundGraph& bound;
  const KernelList& list;
  const BufferPlan& plan;
  std::span<const NodeId> at{};  // per node of the graph given, its place in `bound`; empty where that is the same

  NodeId place_of(NodeId given) const { return at.empty() ? given : at[given.index]; }
};

struct BesidePlan {
  int64_t bytes = 0;                   // of each device: scratch
  int64_t shared = 0;                  // of all devices of a process together: workspaces of libraries
  std::vector<LaunchPlaces> places{};  // by launch, where some run together; empty: each in its own
};

// Bytes of a step as formed, where that is more than its plan: of a mesh's device, which holds what collectives move besides.
using CountDevice = std::function<int64_t(const FormedView& formed, const BesidePlan& besides)>;

}  // namespace einc
