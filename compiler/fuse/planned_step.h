// SPDX-License-Identifier: Apache-2.0
// A run scheduled for a machine, as a report speaks of it: its kernels and its memory.
#pragma once
#include <functional>
#include <memory>
#include <string>

#include "compiler/fuse/form_graph.h"
#include "compiler/lower/planned_memory.h"
#include "compiler/lower/processor.h"

namespace einc {

struct PlannedStep {
  std::string target;  // "cpu" or "cuda"
  std::shared_ptr<const FormedGraph> formed;
  PlannedMemory memory;  // with the scratch of all threads
  BesidePlan besides;
  int threads = 0;  // of a processor; 0: a GPU's program
  std::optional<Processor> processor{};
};

// The graph outlives the result; dims bind and sizes fit.
// `of_device`: of a mesh's device, what a limit counts (MemoryLimit); none: the limit is of the whole program's training steps.
using PlanStep = std::function<PlannedStep(const Graph& graph, const Bindings& dims, RunMode mode, const CountDevice& of_device)>;

PlanStep plan_for_processor(const Processor& processor, const Scheduling& options = Scheduling::all, int threads = 1);

}  // namespace einc
