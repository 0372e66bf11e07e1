// SPDX-License-Identifier: Apache-2.0
// Guards between buffers find kernels that write beside their own.
#include <doctest/doctest.h>

#include "tests/support/guarded_gpu.h"
#include "tests/unit/cuda/saxpy.h"

namespace einc {
namespace {

// By 64 threads over vectors of 64 floats.
std::string hit_of(const std::string& statement) {
  const CudaExecutable executable = one_kernel(
      "beside",
      "extern \"C\" __global__ void beside(const f32* x, f32* y, const u64* step, const u64* keys, Fault* fault, i32 launch) {\n" +
          statement + "\n}",
      {"x"}, 64, {{1, 1, 1}, {64, 1, 1}, 0});
  const CudaKernels kernels(executable, test_cubins(), 1);
  GuardedGpu gpu(executable, kernels);
  gpu.set(0, f32_array(std::vector<float>(64, 2)));
  try {
    gpu.run(1, 1);
  } catch (const GuardHit& hit) {
    return hit.what();
  }
  CHECK(floats_of(gpu.get(1)) == std::vector<float>(64, 2));
  return "";
}

}  // namespace

TEST_CASE("writes beside a buffer are found after the launch, and named") {
  CHECK(hit_of("y[threadIdx.x] = x[threadIdx.x];") == "");
  CHECK(hit_of("y[threadIdx.x + 1] = x[threadIdx.x];") == "launch 0 (beside) writes 0 bytes behind buffer 1");
  CHECK(hit_of("y[threadIdx.x + 20] = x[threadIdx.x];") == "launch 0 (beside) writes 0 bytes behind buffer 1");
  CHECK(hit_of("y[i32(threadIdx.x) - 2] = x[threadIdx.x];") == "launch 0 (beside) writes 8 bytes before buffer 1");
  CHECK(hit_of("const_cast<f32*>(x)[threadIdx.x * 65 / 64 + (threadIdx.x == 63)] = 0;\ny[threadIdx.x] = 2;") ==
        "launch 0 (beside) writes 0 bytes behind 'x'");
}

}  // namespace einc
