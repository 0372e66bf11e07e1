// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/planned_step.h"

#include "compiler/lower/processor_plan.h"

namespace einc {

PlanStep plan_for_processor(const Processor& processor, const Scheduling& options, int threads) {
  return [=](const Graph& graph, const Bindings& dims, RunMode mode, const CountDevice& of_device) {
    Scheduling counted = options;
    if (counted.memory_limit) counted.memory_limit->of_device = of_device;
    const ScheduleTarget target = processor_target(processor, threads);
    auto formed = std::make_shared<const FormedGraph>(form_within_limit(graph, dims, mode, counted, target));
    const int64_t panels = panel_bytes(formed->list);
    PlannedMemory memory = planned_memory(formed->bound, formed->list, formed->plan, threads * panels, panels);
    BesidePlan besides = target.besides(formed->view());
    return PlannedStep{"cpu", std::move(formed), std::move(memory), std::move(besides), threads, processor};
  };
}

}  // namespace einc
