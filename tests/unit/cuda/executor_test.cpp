// SPDX-License-Identifier: Apache-2.0
#include <doctest/doctest.h>

#include "emulator.h"
#include "runtime/base/failure.h"
#include "runtime/base/random.h"
#include "tests/unit/cuda/saxpy.h"

namespace einc {
namespace {

std::vector<float> ramp(size_t count, float first, float by) {
  std::vector<float> values(count);
  for (size_t i = 0; i < count; ++i) values[i] = first + by * static_cast<float>(i);
  return values;
}

}  // namespace

TEST_CASE("a kernel runs on the emulated GPU") {
  OnGpu gpu(one_kernel("saxpy", kSaxpy, {"x", "z"}, 100, {{2, 1, 1}, {64, 1, 1}, 0}));
  gpu.executor.set(0, f32_array(ramp(100, 1, 0.5f)));
  gpu.executor.set(1, f32_array(ramp(100, -3, 1)));
  for (const unsigned order : {0u, 1u, 7u}) {
    emulator::set_order(order);
    gpu.executor.run(1, 2);
    const std::vector<float> y = floats_of(gpu.executor.get(2));
    for (size_t i = 0; i < 100; ++i) CHECK(y[i] == 2 * (1 + 0.5f * static_cast<float>(i)) + static_cast<float>(i) - 3);
  }
  emulator::set_order(0);
}

TEST_CASE("the step, the streams' keys and the number of the launch reach a kernel") {
  CudaExecutable executable = one_kernel("told", R"(
extern "C" __global__ void told(f32* y, const u64* step, const u64* keys, Fault* fault, i32 launch) {
  y[0] = static_cast<f32>(*step);
  y[1] = static_cast<f32>(keys[0] >> 32);
  y[2] = static_cast<f32>(keys[1] >> 32);
  y[3] = static_cast<f32>(launch);
})",
                                         {}, 4, {});
  executable.program.launches[0].streams = {"a", "b"};
  OnGpu gpu(std::move(executable));
  gpu.executor.run(5, 77);
  const std::vector<float> y = floats_of(gpu.executor.get(0));
  CHECK(y[0] == 77);
  CHECK(y[1] == static_cast<float>(random_key(5, "a")[1]));
  CHECK(y[2] == static_cast<float>(random_key(5, "b")[1]));
  CHECK(y[3] == 0);
}

TEST_CASE("of several positions outside a table the first is reported") {
  CudaExecutable executable = one_kernel("look", R"(
extern "C" __global__ void look(const f32* x, f32* y, const u64* step, const u64* keys, Fault* fault, i32 launch) {
  const i32 i = blockIdx.x * blockDim.x + threadIdx.x;
  const i64 at = static_cast<i64>(x[i]);
  if (at < 0 || at >= 7) index_fault(fault, launch, 0, i, at);
  y[i] = x[i];
})",
                                         {"ids"}, 64, {{2, 1, 1}, {32, 1, 1}, 0});
  executable.program.launches[0].sites = {{"ids", "axis 'vocab' of 'wte'", {16, 4}, 7, " (look.ein:2:5)"}};
  OnGpu gpu(std::move(executable));
  std::vector<float> ids(64, 3);
  gpu.executor.set(0, f32_array(ids));
  gpu.executor.run(1, 1);
  ids[22] = -1, ids[45] = 9, ids[63] = 7;
  gpu.executor.set(0, f32_array(ids));
  for (const unsigned order : {0u, 1u, 2u}) {
    emulator::set_order(order);
    CHECK_THROWS_WITH_AS(gpu.executor.run(1, 1),
                         "index out of range: 'ids' at [5, 2] is -1, but axis 'vocab' of 'wte' has size 7 (look.ein:2:5)", RuntimeFailure);
  }
  emulator::set_order(0);
}

TEST_CASE("of one position's sites the first is reported, with all bits of what it held, whichever comes first") {
  CudaExecutable executable = one_kernel("look_twice", R"(
extern "C" __global__ void look_twice(const f32* x, f32* y, const u64* step, const u64* keys, Fault* fault, i32 launch) {
  const i32 i = threadIdx.x;
  index_fault(fault, launch, 1 - i / 32, 5 + i % 3, i < 32 ? 7 : -(1ll << 60) - 12345678901ll);
  y[i] = x[i];
})",
                                         {"ids"}, 64, {{1, 1, 1}, {64, 1, 1}, 0});
  executable.program.launches[0].sites = {{"ids", "axis 'a'", {16}, 7, " (look.ein:2:5)"}, {"ids", "axis 'b'", {16}, 7, " (look.ein:3:5)"}};
  OnGpu gpu(std::move(executable));
  for (const unsigned order : {0u, 1u, 2u}) {
    emulator::set_order(order);
    CHECK_THROWS_WITH_AS(gpu.executor.run(1, 1),
                         "index out of range: 'ids' at [5] is -1152921516952525877, but axis 'a' has size 7 (look.ein:2:5)",
                         RuntimeFailure);
  }
  emulator::set_order(0);
}

}  // namespace einc
