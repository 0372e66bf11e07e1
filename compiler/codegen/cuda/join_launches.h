// SPDX-License-Identifier: Apache-2.0
// Launches of one function, like a step's updates of all params, as one launch of all their blocks.
#pragma once
#include "runtime/cuda/cuda_executable.h"

namespace einc {

// Which of a launch's buffers its kernel writes; none for one that runs alone.
using WrittenBuffers = std::vector<bool>;

// Launches that may run as early as another of the same function run with it (CudaCall::together): nothing in between touches what they
// write or writes what they touch, they draw no random numbers and check no positions. What changes params and states joins only such.
// `written`: by launch. Sets by_table of their functions.
void join_launches(CudaExecutable& executable, const std::vector<WrittenBuffers>& written);

}  // namespace einc
