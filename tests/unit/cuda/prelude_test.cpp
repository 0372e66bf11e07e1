// SPDX-License-Identifier: Apache-2.0
// The prelude's functions on the emulated GPU against the formats of the CPU.
#include <doctest/doctest.h>

#include <cmath>
#include <limits>

#include "runtime/base/float_format.h"
#include "tests/unit/cuda/saxpy.h"

namespace einc {
namespace {

// Floats of every exponent, near what rounds to even and to beyond each format's range.
std::vector<float> telling_floats() {
  std::vector<float> values{0, -0.0f, 448, 464, 464.001f, 480, 57344, 61439, 61440, 65504, 65519, 65520, 3.39e38f};
  for (int exponent = -40; exponent < 20; ++exponent)
    for (int fraction = 0; fraction < 64; ++fraction)
      for (const float off : {-1e-6f, 0.0f, 1e-6f}) values.push_back(std::ldexp(1 + static_cast<float>(fraction) / 64 + off, exponent));
  const size_t positive = values.size();
  for (size_t i = 0; i < positive; ++i) values.push_back(-values[i]);
  values.push_back(std::numeric_limits<float>::infinity());
  values.push_back(-std::numeric_limits<float>::infinity());
  values.push_back(std::numeric_limits<float>::quiet_NaN());
  while (values.size() % 64 != 0) values.push_back(1);
  return values;
}

void check_format(DType dtype, const std::string& type, const std::string& convert) {
  const std::vector<float> values = telling_floats();
  const auto count = static_cast<int64_t>(values.size());
  const std::string name = "through_" + type;
  OnGpu gpu(one_kernel(name,
                       "extern \"C\" __global__ void " + name +
                           "(const f32* x, f32* y, const u64* step, const u64* keys, Fault* fault, i32 launch) {\n"
                           "  const i32 i = blockIdx.x * 64 + threadIdx.x;\n  y[i] = to_f32(" +
                           convert + "(x[i]));\n}",
                       {"x"}, count, {{static_cast<uint32_t>(count / 64), 1, 1}, {64, 1, 1}, 0}));
  gpu.executor.set(0, f32_array(values));
  gpu.executor.run(1, 1);
  const std::vector<float> y = floats_of(gpu.executor.get(1));
  for (size_t i = 0; i < values.size(); ++i) {
    const auto expected = static_cast<float>(decode_float(dtype, encode_float(dtype, values[i])));
    CAPTURE(values[i]);
    if (std::isnan(expected)) {
      CHECK(std::isnan(y[i]));
    } else {
      CHECK(y[i] == expected);
      CHECK(std::signbit(y[i]) == std::signbit(expected));
    }
  }
}

// bf16 of small whole numbers is exact, and so are its sums here.
float whole(int i, int j) { return static_cast<float>((i * 7 + j * 13) % 11 - 5); }

}  // namespace

TEST_CASE("conversions of the prelude agree with the CPU's") {
  check_format(DType::bf16, "bf16", "to_bf16");
  check_format(DType::f16, "f16", "to_f16");
  check_format(DType::f8e4m3, "e4m3", "to_e4m3");
  check_format(DType::f8e5m2, "e5m2", "to_e5m2");
}

TEST_CASE("a tile of a matrix product: copies, ldmatrix and mma") {
  // y (16 x 8) = a (16 x 16) b (16 x 8), both in bf16 in shared memory, rows of 16 elements; b is transposed there once and once not.
  const std::string text = R"(
extern "C" __global__ void tile(const f32* a, const f32* b, f32* y, const u64* step, const u64* keys, Fault* fault, i32 launch) {
  EINC_SHARED(memory);
  const i32 lane = threadIdx.x;
  bf16* as = reinterpret_cast<bf16*>(memory);
  bf16* bs = reinterpret_cast<bf16*>(memory + 512);   // 16 x 16, columns 8 to 15 zero
  bf16* bt = reinterpret_cast<bf16*>(memory + 1024);  // the same, transposed
  for (i32 i = lane; i < 256; i += 32) {
    as[i] = to_bf16(a[i]);
    bs[i] = to_bf16(i % 16 < 8 ? b[i / 16 * 8 + i % 16] : 0.f);
    bt[i % 16 * 16 + i / 16] = bs[i];
  }
  __syncwarp();
  u32 ra[4], rb[4], rt[4];
  ldmatrix_x4(ra, as + lane % 16 * 16 + lane / 16 * 8);
  ldmatrix_x4_trans(rb, bs + lane % 16 * 16 + lane / 16 * 8);
  ldmatrix_x4(rt, bt + lane % 8 * 16 + lane / 8 % 2 * 8);
  f32 c[4] = {}, d[4] = {};
  mma_m16n8k16_bf16(c, ra, rb);
  mma_m16n8k16_bf16(d, ra, rt);
  for (i32 i = 0; i < 4; ++i) {
    const i32 place = (lane / 4 + i / 2 * 8) * 8 + lane % 4 * 2 + i % 2;
    y[place] = c[i];
    y[128 + place] = d[i];
  }
})";
  OnGpu gpu(one_kernel("tile", text, {"a", "b"}, 256, {{1, 1, 1}, {32, 1, 1}, 1536}));
  std::vector<float> a(256), b(256);
  for (int i = 0; i < 16; ++i)
    for (int k = 0; k < 16; ++k) a[static_cast<size_t>(i * 16 + k)] = whole(i, k);
  for (int k = 0; k < 16; ++k)
    for (int j = 0; j < 8; ++j) b[static_cast<size_t>(k * 8 + j)] = whole(3 * k, j + 1);
  gpu.executor.set(0, f32_array(a));
  gpu.executor.set(1, f32_array(b));
  gpu.executor.run(1, 1);
  const std::vector<float> y = floats_of(gpu.executor.get(2));
  for (int i = 0; i < 16; ++i)
    for (int j = 0; j < 8; ++j) {
      float sum = 0;
      for (int k = 0; k < 16; ++k) sum += whole(i, k) * whole(3 * k, j + 1);
      CHECK(y[static_cast<size_t>(i * 8 + j)] == sum);
      CHECK(y[static_cast<size_t>(128 + i * 8 + j)] == sum);
    }
}

TEST_CASE("copies arrive at the wait for their group, and the rest of a short one is zero") {
  const std::string text = R"(
extern "C" __global__ void arrive(const f32* x, f32* y, const u64* step, const u64* keys, Fault* fault, i32 launch) {
  EINC_SHARED(memory);
  const f32* held = reinterpret_cast<const f32*>(memory);
  cp_async16(memory, x);
  cp_async_commit();
  cp_async16(memory + 16, x + 4, 8);
  cp_async_commit();
  cp_async_wait<1>();
  y[0] = held[3];
  y[1] = held[4] == held[4];
  cp_async_wait<0>();
  y[2] = held[5];
  y[3] = held[6];
})";
  OnGpu gpu(one_kernel("arrive", text, {"x"}, 8, {{1, 1, 1}, {1, 1, 1}, 32}));
  gpu.executor.set(0, f32_array({1, 2, 3, 4, 5, 6, 7, 8}));
  gpu.executor.run(1, 1);
  const std::vector<float> y = floats_of(gpu.executor.get(1));
  CHECK(y[0] == 4);
  CHECK(y[1] == 0);  // not there yet: shared memory is NaN before
  CHECK(y[2] == 6);
  CHECK(y[3] == 0);
}

}  // namespace einc
