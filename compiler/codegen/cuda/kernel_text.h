// SPDX-License-Identifier: Apache-2.0
// A kernel as a function of CUDA C++ and how it is launched (runtime/cuda/cuda_executable.h).
#pragma once
#include <string>
#include <string_view>

#include "compiler/lower/kernel.h"
#include "runtime/base/gpu_shape.h"
#include "runtime/cuda/cuda_executable.h"

namespace einc {

struct CudaFunction {
  std::string_view kind;               // who does what, for people
  std::string body;                    // between the braces; equal for functions that are the same code
  std::string parameters, from_table;  // buffers as parameters, or declared from a table's row
  CudaGrid grid;
  int threads = 1;            // of a block at most
  int64_t scratch_bytes = 0;  // of global memory that all blocks of a launch share, the last buffer; 0: no such buffer
};

// `f32_products`: how attention and contractions multiply what is f32; other kernels do it in f32.
CudaFunction cuda_function(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products = ProductSums::f32);
// The whole definition under a name; `by_table`: its buffers' addresses come in a table (runtime/cuda/cuda_executable.h).
enum class BufferPassing : uint8_t { one_by_one, by_table };
std::string definition(const CudaFunction& function, const std::string& name, BufferPassing passing = BufferPassing::one_by_one);

}  // namespace einc
