// SPDX-License-Identifier: Apache-2.0
// Times of a GPU's units, counted by hand from the device's row.
#include "compiler/report/gpu_times.h"

#include <doctest/doctest.h>

#include <cmath>

#include "compiler/lower/contraction.h"
#include "tests/support/kernel_text.h"
#include "tests/support/near_seconds.h"

using namespace einc;

namespace {

const Device& h100() { return *find_device("h100-sxm"); }

const Kernel& any_kernel() {
  static const Kernel kernel =
      kernel_of("axes a0=16\nouter a0\nb0: read f32[16]\nb1: write f32[16]\nv0: f32 = b0[a0]\nstage \n  b1[a0] = v0\n");
  return kernel;
}

double library_seconds(int64_t rows, int64_t columns, int64_t depth, int64_t batch = 1, DType dtype = DType::bf16) {
  LibraryProduct product;
  product.batch = batch, product.rows = rows, product.columns = columns, product.depth = depth;
  product.left.dtype = product.right.dtype = dtype;
  const KernelWork work{.contraction = 2 * batch * rows * columns * depth};
  return gpu_times(any_kernel(), nullptr, work, &product, h100(), h100().bf16, h100().f32).products - 5e-6;
}

// What the same FLOPs take where no processor waits.
double ideal_seconds(int64_t rows, int64_t columns, int64_t depth) {
  const Device& d = h100();
  return static_cast<double>(2 * rows * columns * depth) / (d.bf16 * d.sustained_products * d.sustained_clock);
}

}  // namespace

TEST_CASE("GPU: a library's long products take the sustained share of the peak") {
  const int64_t rows = 132 * 128, deep = 1 << 16;
  CHECK(library_seconds(rows, 256, deep) == near_seconds(ideal_seconds(rows, 256, deep), 0.01));
  CHECK(library_seconds(rows, 256, 768) == near_seconds(ideal_seconds(rows, 256, 768)));
  // fp8: its own share.
  CHECK(library_seconds(rows, 256, deep, 1, DType::f8e4m3) * h100().sustained_fp8 ==
        near_seconds(library_seconds(rows, 256, deep) * h100().sustained_products));
}

// Measured on an H200, at its full clock.
TEST_CASE("GPU: products and attention as an H200 takes them") {
  Device d = *find_device("h200");
  d.sustained_clock = 1;
  const auto seconds = [&](int64_t rows, int64_t columns, int64_t depth, const LibraryEpilogue& epilogue = {}) {
    LibraryProduct product;
    product.rows = rows, product.columns = columns, product.depth = depth, product.epilogue = epilogue;
    product.left.dtype = product.right.dtype = DType::bf16;
    const KernelWork work{.contraction = 2 * rows * columns * depth};
    return gpu_times(any_kernel(), nullptr, work, &product, d, d.bf16, d.f32).products;
  };
  CHECK(seconds(16384, 50304, 768) == near_seconds(1575e-6, 0.08));
  CHECK(seconds(16384, 3072, 768) == near_seconds(107e-6, 0.08));
  CHECK(seconds(16384, 768, 768) == near_seconds(32e-6, 0.08));
  CHECK(seconds(16384, 768, 3072) == near_seconds(105e-6, 0.08));
  LibraryEpilogue gelu;
  gelu.activation = LibraryActivation::gelu, gelu.input = 0;
  CHECK(seconds(16384, 3072, 768, gelu) == near_seconds(162e-6, 0.08));
  LibraryEpilogue sums;
  sums.right_sums = LibraryVector{};
  CHECK(seconds(768, 3072, 16384, sums) == near_seconds(151e-6, 0.08));
}

TEST_CASE("GPU: processors without a block wait") {
  const int64_t depth = 512;  // too short to be divided
  const double whole = library_seconds(132 * 128, 256, depth);
  // A block more than processors: blocks of half the size fill a last wave better than 128 x 256.
  CHECK(library_seconds(133 * 128, 256, depth) > 1.2 * whole);
  CHECK(library_seconds(133 * 128, 256, depth) < 1.6 * whole);
  CHECK(library_seconds(2 * 132 * 128, 256, depth) == near_seconds(2 * whole));
  CHECK(library_seconds(128, 256, depth, 132) == near_seconds(whole));  // blocks of a batch
  // Few blocks: a processor's share of the peak each, unless the depth is divided among them.
  CHECK(library_seconds(128, 128, depth) > 100 * ideal_seconds(128, 128, depth));
  CHECK(library_seconds(128, 128, 1 << 17) < 1.5 * ideal_seconds(128, 128, 1 << 17));
  // Edges: the rows that are missing are multiplied all the same.
  CHECK(library_seconds(132 * 128, 250, depth) == near_seconds(whole));
}

TEST_CASE("GPU: what warps multiply themselves, and special functions") {
  const Device& d = h100();
  const KernelWork product{.contraction = int64_t{1} << 40};
  const GpuTimes own = gpu_times(any_kernel(), nullptr, product, nullptr, d, d.bf16, d.f32);
  CHECK_FALSE(own.by_turns);
  // Eight instructions for 4096 FLOPs, four a clock on each processor: half the peak, less than mma.sync's 0.629.
  CHECK(own.products == near_seconds(std::exp2(40) / 4096 * 8 / (4 * 132 * d.clock) / d.sustained_clock));
  CHECK(own.products > std::exp2(40) / (d.bf16 * d.warp_products * d.sustained_clock));
  // f32 without tensor cores: the vector units' peak.
  CHECK(gpu_times(any_kernel(), nullptr, product, nullptr, d, d.f32, d.f32).products ==
        near_seconds(std::exp2(40) / d.f32 / d.sustained_clock));
  // 16 results a clock: one exponential takes as long as eight additions, and seven instructions go beside it.
  const int64_t n = int64_t{1} << 30;
  const auto vector = [&](const KernelWork& work) { return gpu_times(any_kernel(), nullptr, work, nullptr, d, d.bf16, d.f32).vector; };
  CHECK(vector({.elementwise = n, .transcendental = n}) == near_seconds(8 * vector({.elementwise = n}), 0.2));
  CHECK(vector({.elementwise = 9 * n, .transcendental = n}) > 1.5 * vector({.elementwise = n, .transcendental = n}));
}

TEST_CASE("GPU: an instruction of tensor cores multiplies half as much tf32 as it does of 16 bits") {
  const Device& d = h100();
  Kernel tf32 = kernel_of(kProductText);
  find_contraction(tf32);
  const KernelWork product{.contraction = int64_t{1} << 40};
  const GpuTimes own = gpu_times(tf32, nullptr, product, nullptr, d, d.tf32, d.f32);
  // Eight instructions for 2048 FLOPs, four a clock on each processor.
  CHECK(own.products == near_seconds(std::exp2(40) / 2048 * 8 / (4 * 132 * d.clock) / d.sustained_clock));
}

TEST_CASE("GPU: rates of a file are taken as they are") {
  Device own;
  own.target = DeviceTarget::cuda;
  const KernelWork product{.contraction = int64_t{1} << 40};
  CHECK_FALSE(own.has_sustained_rates());
  CHECK(gpu_times(any_kernel(), nullptr, product, nullptr, own, 1e15, 1e14).products == near_seconds(std::exp2(40) / 1e15));
}
