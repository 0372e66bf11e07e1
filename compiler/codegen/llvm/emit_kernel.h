// SPDX-License-Identifier: Apache-2.0
// A kernel as a function of LLVM IR (runtime/program/kernel_function.h). Loops, lanes and hoisting are explicit: what is
// vectorised is vectorised because the loop plan says so, and a value is computed in the outermost loop that it allows.
#pragma once
#include <string>

#include "compiler/lower/kernel.h"
#include "compiler/lower/loop_plan.h"

namespace llvm {
class Module;
}

namespace einc {

void emit_kernel(llvm::Module& module, const std::string& name, const Kernel& kernel, const LoopPlan& plan);

}  // namespace einc
