// SPDX-License-Identifier: Apache-2.0
// Where the memory of a run goes, read off its plan: rows that add up to all of it.
#pragma once
#include <string>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/buffer_plan.h"

namespace einc {

// Bytes that are held at the launch where most of the arena is in use; each byte has one owner.
struct PlannedMemory {
  int64_t parameters = 0, gradients = 0, optimizer_state = 0, state = 0, inputs = 0;
  int64_t saved = 0;          // of the forward for the backward
  int64_t workspace = 0;      // other values, sums in parts, snapshots, scratch of the threads, libraries
  int64_t fragmentation = 0;  // nobody's then: holes of the arena, and what rounds places up to whole lines
  int64_t per_thread = 0;     // of the workspace once, again for each further thread
  std::string launch;         // what it makes; "the end" after the last

  int64_t total() const { return parameters + gradients + optimizer_state + state + inputs + saved + workspace + fragmentation; }
};

// `besides`: what a run takes beside its plan, of which `per_thread` for each thread.
PlannedMemory planned_memory(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, int64_t besides, int64_t per_thread);

}  // namespace einc
