// SPDX-License-Identifier: Apache-2.0
// What the GPU can do at best, measured: products of large matrices by cuBLASLt, bytes from memory to memory.
#pragma once
#include "runtime/cuda/cuda_executable.h"

namespace einc::cuda {

struct GpuPeak {
  double f32_flops = 0, bf16_flops = 0;  // FLOPs a second of square products, the best size up to 8192; of random numbers
  double copy = 0;                       // bytes a second, read and written ones together
};

// Takes under a second. `f32_sums`: how f32 is multiplied. Throws RuntimeFailure (resource).
GpuPeak measure_peak(ProductSums f32_sums);

}  // namespace einc::cuda
