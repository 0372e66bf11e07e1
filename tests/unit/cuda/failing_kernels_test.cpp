// SPDX-License-Identifier: Apache-2.0
// What the emulated GPU finds wrong with kernels, and how the runtime says it.
#include <doctest/doctest.h>

#include <cstdlib>

#include "emulator.h"
#include "runtime/base/check.h"
#include "runtime/base/failure.h"
#include "tests/unit/cuda/saxpy.h"

namespace einc {
namespace {

// What a run of one block of so many threads says.
std::string failure_of(const std::string& body, uint32_t threads) {
  const std::string text =
      "extern \"C\" __global__ void wrong(f32* y, const u64* step, const u64* keys, Fault* fault, i32 launch) {\n" + body + "\n}";
  std::string said = "nothing";
  {
    OnGpu gpu(one_kernel("wrong", text, {}, 64, {{1, 1, 1}, {threads, 1, 1}, 2048}));
    try {
      gpu.executor.run(1, 1);
      gpu.executor.wait();
    } catch (const RuntimeFailure& failure) {
      said = failure.what();
    }
    emulator::recover();
  }
  return said;
}

std::string said(const std::string& what) {
  return "the GPU failed: cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (wrong, block (0, 0, 0): " + what +
         "), in one of 1 launches: EINC_CUDA_BLOCKING=1 tells in which";
}

}  // namespace

TEST_CASE("barriers and shuffles that not every thread reaches are found") {
  CHECK(failure_of("if (threadIdx.x < 16) __syncthreads();\ny[threadIdx.x] = 1;", 64) ==
        said("__syncthreads after some threads of the block ended"));
  CHECK(failure_of("if (threadIdx.x < 16)\n__syncthreads();\nelse\n__syncthreads();\ny[threadIdx.x] = 1;", 64) ==
        said("__syncthreads reached at different places"));
  CHECK(failure_of("if (threadIdx.x & 1) y[threadIdx.x] = __shfl_xor_sync(0xffffffffu, 1.f, 2);", 64) ==
        said("deadlock: not every thread that a barrier or shuffle names reaches it"));
  CHECK(failure_of("y[threadIdx.x] = __shfl_sync(0x0000ffffu, 1.f, 20);", 16) == said("a shuffle reads a lane outside its mask"));
  CHECK(failure_of("y[threadIdx.x] = __shfl_xor_sync(0x0000fffeu, 1.f, 0);", 16) == said("a lane is not in its own mask"));
  CHECK(failure_of("__syncthreads();\ny[threadIdx.x] = __shfl_down_sync(0xffffffffu, 1.f, 4);\n__syncthreads();", 64) == "nothing");
}

TEST_CASE("writes behind the memory of the GPU are found") {
  CHECK(
      failure_of("y[64 + threadIdx.x] = 1;", 1) ==
      "the GPU failed: cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (wrong, memory behind an allocation of 256 bytes was overwritten), in "
      "one of 1 launches: EINC_CUDA_BLOCKING=1 tells in which");
  CHECK(failure_of("y[-1] = 1;", 1) ==
        "the GPU failed: cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (wrong, memory in front of an allocation of 256 bytes was "
        "overwritten), in one of 1 launches: EINC_CUDA_BLOCKING=1 tells in which");
}

TEST_CASE("copies to shared memory that nothing waits for are found") {
  const std::string begin = "EINC_SHARED(memory);\ncp_async16(memory + 16 * threadIdx.x, y + 4 * threadIdx.x);\ncp_async_commit();\n";
  CHECK(failure_of(begin, 4) == said("a thread ends while its cp_async16 is under way"));
  CHECK(failure_of(begin + "cp_async_wait<1>();", 4) == said("a thread ends while its cp_async16 is under way"));
  CHECK(failure_of(begin + "cp_async_wait<0>();", 4) == "nothing");
}

TEST_CASE("a failure names the launch when each is waited for") {
  setenv("EINC_CUDA_BLOCKING", "1", 1);
  CHECK(failure_of("if (threadIdx.x < 16) __syncthreads();\ny[threadIdx.x] = 1;", 64) ==
        "the GPU failed: cuStreamSynchronize: CUDA_ERROR_LAUNCH_FAILED (wrong, block (0, 0, 0): __syncthreads after some threads of the "
        "block "
        "ended), in 'wrong' (saxpy.ein:3:1)");
  unsetenv("EINC_CUDA_BLOCKING");
}

TEST_CASE("a launch that no GPU takes names its label and line") {
  CHECK(failure_of("y[0] = 1;", 2000) ==
        "the GPU failed: cuLaunchKernel: CUDA_ERROR_INVALID_VALUE (wrong: a launch of this shape), in 'wrong' (saxpy.ein:3:1)");
}

TEST_CASE("text that the compiler refuses is einc's own mistake") {
  CHECK_THROWS_AS(failure_of("y[0] = nothing_of_this_name;", 1), InternalError);
}

}  // namespace einc
