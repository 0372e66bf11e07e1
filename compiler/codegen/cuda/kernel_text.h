// SPDX-License-Identifier: Apache-2.0
// A kernel as a function of CUDA C++ and how it is launched (runtime/cuda/cuda_executable.h).
#pragma once
#include <string>

#include "compiler/gpu_plan/gpu_plan.h"
#include "runtime/cuda/cuda_executable.h"

namespace einc {

struct CudaFunction {
  std::string body;                    // between the braces; equal for functions that are the same code
  std::string parameters, from_table;  // buffers as parameters, or declared from a table's row
  CudaGrid grid;
  int threads = 1;            // of a block at most
  int blocks_together = 1;    // on a processor at least
  int64_t scratch_bytes = 0;  // of global memory that all blocks of a launch share, the last buffer; 0: no such buffer
};

CudaFunction cuda_function(const Kernel& kernel, const GpuPlan& plan);
// The whole definition under a name; `by_table`: its buffers' addresses come in a table (runtime/cuda/cuda_executable.h).
enum class BufferPassing : uint8_t { one_by_one, by_table };
std::string definition(const CudaFunction& function, const std::string& name, BufferPassing passing = BufferPassing::one_by_one);

}  // namespace einc
