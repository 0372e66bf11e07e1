// SPDX-License-Identifier: Apache-2.0
// A kernel by itself, over vectors of any dtype.
#pragma once
#include <fmt/format.h>

#include <bit>
#include <cstring>
#include <vector>

#include "runtime/base/check.h"
#include "tests/unit/cuda/saxpy.h"

namespace einc {

template <class T>
HostArray array_of(DType dtype, const std::vector<T>& values) {
  EINC_CHECK(static_cast<int>(sizeof(T)) == bytes_of(dtype), "elements of another size");
  HostArray array{dtype, {static_cast<int64_t>(values.size())}, std::vector<std::byte>(values.size() * sizeof(T))};
  std::memcpy(array.bytes.data(), values.data(), array.bytes.size());
  return array;
}

template <class T>
std::vector<T> elements_of(const HostArray& array) {
  std::vector<T> values(array.bytes.size() / sizeof(T));
  std::memcpy(values.data(), array.bytes.data(), array.bytes.size());
  return values;
}

struct Vector {
  DType dtype;
  int64_t count;
};

struct KernelRun {
  std::string name;
  std::string helpers, body;  // of the kernel, which has `x0`, `x1`, ... to read and `y0`, `y1`, ... to write, and `count` of y0
  std::vector<HostArray> inputs;
  std::vector<Vector> outputs;
  uint32_t blocks = 1, threads = 32, shared_bytes = 0;
  std::vector<SiteInfo> sites = {};
  int launches = 1;
};

inline std::string element_type(DType dtype) {
  switch (dtype) {
    case DType::f8e4m3:
      return "e4m3";
    case DType::f8e5m2:
      return "e5m2";
    default:
      return std::string(to_string(dtype));
  }
}

inline CudaExecutable executable_of(const KernelRun& run) {
  CudaExecutable executable;
  Executable& program = executable.program;
  Launch launch;
  launch.label = run.name;
  launch.sites = run.sites;
  std::string parameters;
  const auto add = [&](BufferRole role, std::string name, DType dtype, int64_t count) {
    const int64_t bytes = count * bytes_of(dtype);
    parameters += fmt::format("{}{}* {}, ", role == BufferRole::input ? "const " : "", element_type(dtype), name);
    launch.buffers.push_back(static_cast<uint32_t>(program.buffers.size()));
    program.buffers.push_back(
        {role, role == BufferRole::input ? std::move(name) : "", dtype, {count}, bytes, program.memory_bytes, InitKind::zeros, {}});
    program.memory_bytes += (bytes + 255) / 256 * 256;
  };
  for (size_t i = 0; i < run.inputs.size(); ++i) add(BufferRole::input, fmt::format("x{}", i), run.inputs[i].dtype, run.inputs[i].shape[0]);
  for (size_t i = 0; i < run.outputs.size(); ++i) add(BufferRole::arena, fmt::format("y{}", i), run.outputs[i].dtype, run.outputs[i].count);
  program.functions = {run.name};
  program.launches.assign(static_cast<size_t>(run.launches), launch);
  executable.prelude = cuda_prelude();
  executable.texts = {fmt::format(
      "{}extern \"C\" __global__ void __launch_bounds__({}) {}({}const u64* step, const u64* keys, Fault* fault, "
      "i32 launch) {{\n  const i32 count = {};\n  const i32 thread = i32(blockIdx.x) * {} + threadIdx.x;\n  "
      "const i32 all_threads = {};\n{}\n}}\n",
      run.helpers, run.threads, run.name, parameters, run.outputs.at(0).count, run.threads, run.blocks * run.threads, run.body)};
  executable.calls.assign(static_cast<size_t>(run.launches), {{{run.blocks, 1, 1}, {run.threads, 1, 1}, run.shared_bytes}, std::nullopt});
  return executable;
}

inline std::vector<HostArray> results_of(const KernelRun& run) {
  use_test_gpu();
  OnGpu gpu(executable_of(run));
  for (uint32_t i = 0; i < run.inputs.size(); ++i) gpu.executor.set(i, run.inputs[i]);
  gpu.executor.run(1, 1);
  std::vector<HostArray> results;
  for (uint32_t i = 0; i < run.outputs.size(); ++i) results.push_back(gpu.executor.get(static_cast<uint32_t>(run.inputs.size()) + i));
  return results;
}

// y0[i] made by `statement` for every i, by 4096 threads.
inline std::vector<HostArray> for_each_element(const std::string& name, const std::string& statement, std::vector<HostArray> inputs,
                                               std::vector<Vector> outputs) {
  KernelRun run{name, "", "for (i32 i = thread; i < count; i += all_threads) {\n" + statement + "\n}", std::move(inputs),
                std::move(outputs)};
  run.blocks = 16;
  run.threads = 256;
  return results_of(run);
}

}  // namespace einc
