// SPDX-License-Identifier: Apache-2.0
// Machine code for tests of many small programs: what is the same function in several of them, or in several ways to compile one, is
// compiled once in this process.
#pragma once
#include <span>
#include <vector>

#include "compiler/codegen/llvm/native_code.h"

namespace einc {

// Of each program its functions in their order; of all but the first those that every run launches, the others are null. What is new is
// made as one module, and kept until the process ends.
std::vector<std::vector<KernelFunction*>> shared_code(std::span<const LoweredProgram* const> programs);

}  // namespace einc
