// SPDX-License-Identifier: Apache-2.0
// --emit=launches: what a program does on an NVIDIA GPU, launch by launch, and where everything lies. The same text on every machine.
#pragma once
#include <string>

#include "compiler/pipeline/cuda_program.h"

namespace einc {

// Memory by purpose, in bytes; of each launch its kernel or the product that cuBLASLt does, its grid, and the tensors that it reads and
// writes with their offsets.
std::string launch_plan(const CudaProgramText& program);

}  // namespace einc
