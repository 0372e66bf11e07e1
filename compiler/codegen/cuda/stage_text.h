// SPDX-License-Identifier: Apache-2.0
// The body of a kernel whose stages are loops, as its thread plan divides them.
#pragma once
#include <string>

#include "compiler/gpu_plan/thread_plan.h"

namespace einc {

std::string stages_text(const Kernel& kernel, const ThreadPlan& plan);

}  // namespace einc
