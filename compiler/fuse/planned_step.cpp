// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/planned_step.h"

#include "compiler/lower/processor_plan.h"

namespace einc {

PlanStep plan_for_processor(const Processor& processor, const Scheduling& options, int threads) {
  return [=](const Graph& graph, const Bindings& dims, RunMode mode) {
    auto formed = std::make_shared<const FormedGraph>(form_within_limit(
        graph, dims, mode, options, processor_target(processor), [&](const FormedGraph& f) { return threads * panel_bytes(f.list); }));
    const int64_t panels = panel_bytes(formed->list);
    PlannedMemory memory = planned_memory(formed->bound, formed->list, formed->plan, threads * panels, panels);
    return PlannedStep{"cpu", std::move(formed), std::move(memory), threads, processor};
  };
}

}  // namespace einc
