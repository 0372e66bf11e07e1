// SPDX-License-Identifier: Apache-2.0
// What threads do with memory: vectors at once, copies into shared memory, much shared memory, and the record of a fault.
#include <doctest/doctest.h>

#include "runtime/base/failure.h"
#include "tests/cuda/device/run_kernel.h"

namespace einc {

TEST_CASE("vectors of each size are read and written in order") {
  struct {
    DType dtype;
    int width;
  } const sizes[] = {{DType::f64, 2},  {DType::f32, 4}, {DType::f32, 2}, {DType::bf16, 8}, {DType::bf16, 4},
                     {DType::bf16, 2}, {DType::u8, 16}, {DType::u8, 4},  {DType::u8, 2}};
  for (const auto& [dtype, width] : sizes) {
    const std::string name = fmt::format("turn_{}_{}", element_type(dtype), width);
    HostArray x{dtype, {1024}, std::vector<std::byte>(static_cast<size_t>(1024 * bytes_of(dtype)))};
    for (size_t i = 0; i < x.bytes.size(); ++i) x.bytes[i] = static_cast<std::byte>(i * 37 + i / 256);
    const auto y =
        results_of({name,
                    "",
                    fmt::format("for (i32 i = thread; i < 1024 / {0}; i += all_threads) {{\n  auto v = load_vec<{0}>(x0 + {0} * i);\n"
                                "  decltype(v) w;\n  for (int k = 0; k < {0}; ++k) w.at[k] = v.at[{0} - 1 - k];\n"
                                "  store_vec(y0 + 1024 - {0} * (i + 1), w);\n}}",
                                width),
                    {x},
                    {{dtype, 1024}}})[0];
    const auto size = static_cast<size_t>(bytes_of(dtype));
    bool right = true;
    for (size_t i = 0; i < 1024; ++i) right = right && std::memcmp(&y.bytes[i * size], &x.bytes[(1023 - i) * size], size) == 0;
    CAPTURE(name);
    CHECK(right);
  }
}

TEST_CASE("copies into shared memory arrive whole, the rest of a short one zero") {
  std::vector<float> x(4 * 64);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i + 1);
  KernelRun run{
      "arrive",
      "",
      "EINC_SHARED(memory);\nfor (int round = 0; round < 2; ++round) {\n"
      "  cp_async16(memory + 16 * (threadIdx.x + 32 * round), x0 + 4 * (threadIdx.x + 32 * round), (threadIdx.x + round) % 5 * 4);\n"
      "  cp_async_commit();\n}\ncp_async_wait<1>();\n__syncthreads();\nconst f32* held = reinterpret_cast<const f32*>(memory);\n"
      "for (int k = 0; k < 4; ++k) y0[4 * threadIdx.x + k] = held[4 * (threadIdx.x ^ 1) + k];\ncp_async_wait<0>();\n__syncthreads();\n"
      "for (int k = 0; k < 4; ++k) y0[128 + 4 * threadIdx.x + k] = held[128 + 4 * (threadIdx.x ^ 1) + k];",
      {array_of(DType::f32, x)},
      {{DType::f32, 256}}};
  run.shared_bytes = 1024;
  const auto y = elements_of<float>(results_of(run)[0]);
  for (size_t i = 0; i < 256; ++i) {
    const size_t thread = i / 4 % 32 ^ 1, round = i / 128, from = round * 128 + thread * 4 + i % 4;
    CHECK(y[i] == (i % 4 < (thread + round) % 5 ? x[from] : 0));
  }
}

TEST_CASE("a block may take more than 48 KiB of shared memory") {
  KernelRun run{
      "much",
      "",
      "EINC_SHARED(memory);\nf32* held = reinterpret_cast<f32*>(memory);\nfor (i32 i = threadIdx.x; i < 25600; i += 256) held[i] = x0[i];\n"
      "__syncthreads();\nfor (i32 i = threadIdx.x; i < 25600; i += 256) y0[i] = held[25599 - i];",
      {},
      {{DType::f32, 25600}}};
  std::vector<float> x(25600);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(i);
  run.inputs = {array_of(DType::f32, x)};
  run.threads = 256;
  run.shared_bytes = 25600 * 4;
  const auto y = elements_of<float>(results_of(run)[0]);
  bool right = true;
  for (size_t i = 0; i < x.size(); ++i) right = right && y[i] == x[25599 - i];
  CHECK(right);
}

TEST_CASE("of many faults the first launch's at the smallest place is told") {
  KernelRun run{"outside",
                "",
                "for (i32 i = thread; i < 4096; i += all_threads) {\n  if (i % 5 == 3 && i > 700) index_fault(fault, launch, 0, i, -i);\n"
                "  y0[i] = 1;\n}",
                {},
                {{DType::f32, 4096}}};
  run.blocks = 8;
  run.threads = 128;
  run.launches = 3;
  run.sites = {{"ids", "axis 'n' of 'table'", {64, 64}, 700, " (f.ein:1:1)"}};
  use_test_gpu();
  OnGpu gpu(executable_of(run));
  CHECK_THROWS_WITH_AS(gpu.executor.run(1, 1),
                       "index out of range: 'ids' at [10, 63] is -703, but axis 'n' of 'table' has size 700 (f.ein:1:1)", RuntimeFailure);
}

}  // namespace einc
