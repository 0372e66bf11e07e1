// SPDX-License-Identifier: Apache-2.0
// What the lanes of a warp do together: shuffles, votes, matrices from shared memory, and products on tensor cores.
#include <doctest/doctest.h>

#include <cmath>

#include "runtime/base/float_format.h"
#include "tests/cuda/device/run_kernel.h"
#include "tests/support/test_gpu.h"

namespace einc {
namespace {

double some(int64_t i) { return std::sin(static_cast<double>(i) * 1.7 + 0.3); }

std::vector<uint16_t> rounded(DType dtype, int64_t count, int64_t phase) {
  std::vector<uint16_t> codes;
  for (int64_t i = 0; i < count; ++i) codes.push_back(encode_float(dtype, some(i + phase)));
  return codes;
}

}  // namespace

TEST_CASE("sums of a warp and of a block") {
  std::vector<float> x(256);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<float>(some(static_cast<int64_t>(i)));
  KernelRun run{
      "sums",
      "",
      "__shared__ f32 parts[8];\nf32 sum = x0[threadIdx.x];\nfor (int o = 16; o > 0; o /= 2) sum += __shfl_xor_sync(0xffffffffu, sum, o);\n"
      "y0[threadIdx.x] = sum;\nif (threadIdx.x % 32 == 0) parts[threadIdx.x / 32] = sum;\n__syncthreads();\nf32 all = 0;\n"
      "for (int w = 0; w < 8; ++w) all += parts[w];\ny1[threadIdx.x] = all;\n"
      "y2[threadIdx.x] = i32(__ballot_sync(0xffffffffu, x0[threadIdx.x] > 0));",
      {array_of(DType::f32, x)},
      {{DType::f32, 256}, {DType::f32, 256}, {DType::i32, 256}}};
  run.threads = 256;
  const auto results = results_of(run);
  float all = 0;
  for (size_t warp = 0; warp < 8; ++warp) {
    std::vector<float> sums(x.begin() + static_cast<int64_t>(warp) * 32, x.begin() + static_cast<int64_t>(warp + 1) * 32);
    uint32_t votes = 0;
    for (size_t lane = 0; lane < 32; ++lane) votes |= uint32_t{sums[lane] > 0} << lane;
    for (size_t o = 16; o > 0; o /= 2) {
      std::vector<float> next = sums;
      for (size_t lane = 0; lane < 32; ++lane) next[lane] = sums[lane] + sums[lane ^ o];
      sums = next;
    }
    for (size_t lane = 0; lane < 32; ++lane) {
      CHECK(elements_of<float>(results[0])[warp * 32 + lane] == sums[lane]);
      CHECK(elements_of<uint32_t>(results[2])[warp * 32 + lane] == votes);
    }
    all += sums[0];
  }
  for (const float sum : elements_of<float>(results[1])) CHECK(sum == all);
}

TEST_CASE("four lanes transpose what they hold") {
  KernelRun run{"transpose",
                "",
                "u32 x[4];\nfor (int i = 0; i < 4; ++i) x[i] = threadIdx.x * 10 + i;\ntranspose_quad(x);\n"
                "for (int i = 0; i < 4; ++i) y0[4 * threadIdx.x + i] = i32(x[i]);",
                {},
                {{DType::i32, 128}}};
  const auto found = elements_of<int32_t>(results_of(run)[0]);
  for (int lane = 0; lane < 32; ++lane)
    for (int i = 0; i < 4; ++i) CHECK(found[static_cast<size_t>(4 * lane + i)] == (lane / 4 * 4 + i) * 10 + lane % 4);
}

TEST_CASE("matrices of 8 x 8 from shared memory, by rows and by columns") {
  std::vector<uint16_t> x(16 * 24);
  for (size_t i = 0; i < x.size(); ++i) x[i] = static_cast<uint16_t>(i * 3 + 1);
  KernelRun run{
      "matrices",
      "",
      "EINC_SHARED(memory);\nu16* held = reinterpret_cast<u16*>(memory);\nfor (i32 i = threadIdx.x; i < 384; i += 32) held[i] = x0[i];\n"
      "__syncwarp();\nu32 r[4], t[4];\nconst i32 lane = threadIdx.x;\n"
      "ldmatrix_x4(r, held + lane % 16 * 24 + lane / 16 * 8);\nldmatrix_x4_trans(t, held + lane % 16 * 24 + lane / 16 * 8);\n"
      "for (int m = 0; m < 4; ++m) {\n  y0[4 * lane + m] = i32(r[m]);\n  y1[4 * lane + m] = i32(t[m]);\n}",
      {array_of(DType::u16, x)},
      {{DType::i32, 128}, {DType::i32, 128}}};
  run.shared_bytes = 768;
  const auto results = results_of(run);
  const auto by_rows = elements_of<uint32_t>(results[0]), by_columns = elements_of<uint32_t>(results[1]);
  for (size_t lane = 0; lane < 32; ++lane)
    for (size_t m = 0; m < 4; ++m) {
      const auto at = [&](size_t row, size_t column) { return uint32_t{x[(m % 2 * 8 + row) * 24 + m / 2 * 8 + column]}; };
      const size_t g = lane / 4, t = lane % 4 * 2;
      CHECK(by_rows[4 * lane + m] == (at(g, t) | at(g, t + 1) << 16));
      CHECK(by_columns[4 * lane + m] == (at(t, g) | at(t + 1, g) << 16));
    }
}

TEST_CASE("products of tiles on tensor cores") {
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto a = rounded(dtype, 256, 0), b = rounded(dtype, 128, 1000);
    std::vector<float> c(128);
    for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(some(static_cast<int64_t>(i) + 5000));
    const std::string type = element_type(dtype);
    const auto results =
        results_of({"tile_" + type,
                    "",
                    "const i32 g = threadIdx.x / 4, t = threadIdx.x % 4 * 2;\nu32 ra[4], rb[2];\n"
                    "for (int i = 0; i < 4; ++i) {\n  const u16* p = x0 + (g + i % 2 * 8) * 16 + t + i / 2 * 8;\n"
                    "  ra[i] = p[0] | u32(p[1]) << 16;\n}\n"
                    "for (int i = 0; i < 2; ++i) {\n  const u16* p = x1 + (t + i * 8) * 8 + g;\n  rb[i] = p[0] | u32(p[8]) << 16;\n}\n"
                    "f32 sum[4];\nfor (int i = 0; i < 4; ++i) sum[i] = x2[(g + i / 2 * 8) * 8 + t + i % 2];\n"
                    "mma_m16n8k16_" +
                        type +
                        "(sum, ra, rb);\n"
                        "for (int i = 0; i < 4; ++i) y0[(g + i / 2 * 8) * 8 + t + i % 2] = sum[i];",
                    {array_of(DType::u16, a), array_of(DType::u16, b), array_of(DType::f32, c)},
                    {{DType::f32, 128}}});
    const auto y = elements_of<float>(results[0]);
    for (size_t i = 0; i < 16; ++i)
      for (size_t j = 0; j < 8; ++j) {
        double sum = c[i * 8 + j];
        for (size_t k = 0; k < 16; ++k) sum += decode_float(dtype, a[i * 16 + k]) * decode_float(dtype, b[k * 8 + j]);
        CHECK(std::fabs(y[i * 8 + j] - sum) < 4e-6);
      }
  }
}

// a b^T of 64 and of 32 rows of b, from shared memory; and c + a b with a in registers.
TEST_CASE("products of four warps together") {
  use_test_gpu();
  if (!cuda::Gpu::get().shape().has_wgmma()) {
    MESSAGE("left out: this GPU has no wgmma");
    return;
  }
  for (const DType dtype : {DType::bf16, DType::f16}) {
    const auto a = rounded(dtype, 4096, 0), b = rounded(dtype, 4096, 9000);
    std::vector<float> c(4096);
    for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(some(static_cast<int64_t>(i) + 20000));
    const std::string type = element_type(dtype);
    KernelRun run{"group_" + type,
                  "",
                  fmt::format("EINC_SHARED(memory);\nu16* held = reinterpret_cast<u16*>(memory);\n"
                              "for (i32 i = threadIdx.x; i < 4096; i += 128) {{\n"
                              "  const i32 r = i / 64, at = r * 64 + ((i / 8 ^ r) & 7) * 8 + i % 8;\n"
                              "  held[at] = x0[i], held[4096 + at] = x1[i];\n}}\n"
                              "wgmma_stored();\n__syncthreads();\n"
                              "const u64 a = wgmma_operand(held), b = wgmma_operand(held + 4096);\n"
                              "const i32 row = threadIdx.x / 4 + threadIdx.x / 32 * 8, column = threadIdx.x % 4 * 2;\n"
                              "f32 wide[8][4], narrow[4][4], sums[8][4];\n"
                              "for (int n = 0; n < 8; ++n)\n  for (int i = 0; i < 4; ++i)\n"
                              "    sums[n][i] = x2[(row + i / 2 * 8) * 64 + n * 8 + column + i % 2];\n"
                              "wgmma_begin();\n#pragma unroll\nfor (int k = 0; k < 4; ++k) {{\n"
                              "  wgmma_{0}(wide, a + 2 * k, b + 2 * k, k > 0);\n  wgmma_{0}(narrow, a + 2 * k, b + 2 * k, k > 0);\n"
                              "  u32 x[4];\n  for (int i = 0; i < 4; ++i) {{\n"
                              "    const u16* p = x0 + (row + i % 2 * 8) * 64 + k * 16 + column + i / 2 * 8;\n"
                              "    x[i] = p[0] | u32(p[1]) << 16;\n  }}\n  wgmma_{0}(sums, x, b + 128 * k);\n}}\n"
                              "wgmma_end();\nwgmma_use(wide), wgmma_use(narrow), wgmma_use(sums);\n"
                              "for (int n = 0; n < 8; ++n)\n  for (int i = 0; i < 4; ++i) {{\n"
                              "    const i32 r = row + i / 2 * 8, at = n * 8 + column + i % 2;\n"
                              "    y0[r * 64 + at] = wide[n][i], y2[r * 64 + at] = sums[n][i];\n"
                              "    if (n < 4) y1[r * 32 + at] = narrow[n][i];\n  }}",
                              type),
                  {array_of(DType::u16, a), array_of(DType::u16, b), array_of(DType::f32, c)},
                  {{DType::f32, 4096}, {DType::f32, 2048}, {DType::f32, 4096}}};
    run.threads = 128, run.shared_bytes = 16384;
    const auto results = results_of(run);
    const auto wide = elements_of<float>(results[0]), narrow = elements_of<float>(results[1]), sums = elements_of<float>(results[2]);
    const auto element = [&](const std::vector<uint16_t>& x, size_t row, size_t column) {
      return decode_float(dtype, x[row * 64 + column]);
    };
    int wrong = 0;
    for (size_t i = 0; i < 64; ++i)
      for (size_t j = 0; j < 64; ++j) {
        double by_rows = 0, sum = c[i * 64 + j];
        for (size_t k = 0; k < 64; ++k) by_rows += element(a, i, k) * element(b, j, k), sum += element(a, i, k) * element(b, k, j);
        wrong += !(std::fabs(wide[i * 64 + j] - by_rows) < 2e-5);
        wrong += !(std::fabs(sums[i * 64 + j] - sum) < 2e-5);
        if (j < 32) wrong += !(std::fabs(narrow[i * 32 + j] - by_rows) < 2e-5);
      }
    CHECK(wrong == 0);
  }
}

TEST_CASE("products of tiles on tensor cores in tf32, of factors rounded to it") {
  std::vector<float> a(128), b(64), c(128);
  for (size_t i = 0; i < a.size(); ++i) a[i] = static_cast<float>(some(static_cast<int64_t>(i)));
  for (size_t i = 0; i < b.size(); ++i) b[i] = static_cast<float>(some(static_cast<int64_t>(i) + 1000));
  for (size_t i = 0; i < c.size(); ++i) c[i] = static_cast<float>(some(static_cast<int64_t>(i) + 5000));
  const auto results =
      results_of({"tile_tf32",
                  "",
                  "const i32 g = threadIdx.x / 4, t = threadIdx.x % 4;\nu32 ra[4], rb[2];\n"
                  "for (int i = 0; i < 4; ++i) ra[i] = to_tf32(__float_as_uint(x0[(g + i % 2 * 8) * 8 + t + i / 2 * 4]));\n"
                  "for (int i = 0; i < 2; ++i) rb[i] = to_tf32(__float_as_uint(x1[(t + i * 4) * 8 + g]));\n"
                  "f32 sum[4];\nfor (int i = 0; i < 4; ++i) sum[i] = x2[(g + i / 2 * 8) * 8 + 2 * t + i % 2];\n"
                  "mma_m16n8k8_tf32(sum, ra, rb);\n"
                  "for (int i = 0; i < 4; ++i) y0[(g + i / 2 * 8) * 8 + 2 * t + i % 2] = sum[i];",
                  {array_of(DType::f32, a), array_of(DType::f32, b), array_of(DType::f32, c)},
                  {{DType::f32, 128}}});
  const auto in_tf32 = [](float x) {
    int exponent = 0;
    const double fraction = std::frexp(static_cast<double>(x), &exponent);
    return std::ldexp(std::round(std::ldexp(fraction, 11)), exponent - 11);
  };
  const auto y = elements_of<float>(results[0]);
  for (size_t i = 0; i < 16; ++i)
    for (size_t j = 0; j < 8; ++j) {
      double sum = c[i * 8 + j];
      for (size_t k = 0; k < 8; ++k) sum += in_tf32(a[i * 8 + k]) * in_tf32(b[k * 8 + j]);
      CHECK(std::fabs(y[i * 8 + j] - sum) < 4e-6);
    }
}

}  // namespace einc
