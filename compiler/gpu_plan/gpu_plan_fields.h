// SPDX-License-Identifier: Apache-2.0
// A GPU's plan as the rest of a line of a schedule that reads back, without what follows from its kernel:
//   threads by warp team 32 block_threads 256 outer a0 stages ( a1 ) ( a1 ) ... points 128 blocks 16
// What it says to people is to_string(plan, kernel).
#pragma once
#include "compiler/gpu_plan/gpu_plan.h"
#include "compiler/lower/schedule_text.h"

namespace einc {

std::string fields_of(const GpuPlan& plan);

// A plan for the kernel; the line fails where it is none.
GpuPlan read_gpu_plan(Cursor& line, const Kernel& kernel);

// For the text of schedules.
GpuPlanText gpu_plan_text();

}  // namespace einc
