// SPDX-License-Identifier: Apache-2.0
// Small programs for the GPU, written by hand.
#pragma once
#include <cstring>

#include "compiler/codegen/cuda/prelude.h"
#include "runtime/cuda/cuda_executor.h"
#include "tests/support/test_gpu.h"

namespace einc {

inline HostArray f32_array(const std::vector<float>& values) {
  HostArray array{DType::f32, {static_cast<int64_t>(values.size())}, std::vector<std::byte>(values.size() * 4)};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

inline std::vector<float> floats_of(const HostArray& array) {
  std::vector<float> values(array.bytes.size() / 4);
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

// One launch over f32 vectors of `count`: the first `inputs` of `names` are inputs, the last is an output.
inline CudaExecutable one_kernel(const std::string& function, const std::string& text, const std::vector<std::string>& inputs,
                                 int64_t count, CudaGrid grid) {
  CudaExecutable executable;
  Executable& program = executable.program;
  const int64_t bytes = (count * 4 + 255) / 256 * 256;
  Launch launch;
  launch.label = function;
  launch.location = "saxpy.ein:3:1";
  for (const std::string& name : inputs) {
    launch.buffers.push_back(static_cast<uint32_t>(program.buffers.size()));
    program.buffers.push_back({BufferRole::input, name, DType::f32, {count}, count * 4, program.memory_bytes, InitKind::zeros, {}});
    program.memory_bytes += bytes;
  }
  launch.buffers.push_back(static_cast<uint32_t>(program.buffers.size()));
  program.outputs.push_back({"y", launch.buffers.back()});
  program.buffers.push_back({BufferRole::arena, "", DType::f32, {count}, count * 4, program.memory_bytes, InitKind::zeros, {}});
  program.memory_bytes += bytes;
  program.functions = {function};
  program.launches = {launch};
  use_test_gpu();
  executable.prelude = cuda_prelude();
  executable.texts = {text};
  executable.calls = {{grid, std::nullopt}};
  return executable;
}

struct OnGpu {
  explicit OnGpu(CudaExecutable given)
      : executable(std::move(given)), kernels(executable, test_cubins(), 2), executor(executable, kernels) {}
  CudaExecutable executable;
  CudaKernels kernels;
  CudaExecutor executor;
};

constexpr const char* kSaxpy = R"(
extern "C" __global__ void __launch_bounds__(64) saxpy(const f32* x, const f32* z, f32* y, const u64* step, const u64* keys, Fault* fault,
                                                       i32 launch) {
  const i32 i = blockIdx.x * blockDim.x + threadIdx.x;
  if (i < 100) y[i] = 2.f * x[i] + z[i];
}
)";

}  // namespace einc
