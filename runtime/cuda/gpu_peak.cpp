// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/gpu_peak.h"

#include <algorithm>
#include <array>
#include <functional>
#include <limits>

#include "runtime/cuda/gemm.h"

namespace einc::cuda {
namespace {

constexpr int kRounds = 5;
constexpr int64_t kSmallestSquare = 128, kLargestSquare = 8192;
constexpr double kEnough = 1e-3;             // seconds of a product that fills the GPU
constexpr int64_t kWorkspace = 32 << 20;     // as cuBLASLt wants on Hopper
constexpr int64_t kCopied = 512 << 20;       // more than any cache holds
constexpr int64_t kLargeMemory = 8LL << 30;  // of a GPU that has room for all of it

// The least of several rounds, after one that does not count.
double seconds_of(Stream stream, const std::function<void()>& work) {
  work();
  double least = std::numeric_limits<double>::infinity();
  for (int round = 0; round < kRounds; ++round) least = std::min(least, seconds_on(stream, work));
  return least;
}

double product_rate(DType dtype, ProductSums sums, Stream stream, const DeviceMemory& workspace) {
  double best = 0, seconds = 0;
  for (int64_t n = kSmallestSquare; n <= kLargestSquare && seconds < kEnough; n *= 2) {
    const int64_t bytes = n * n * bytes_of(dtype);
    std::array<DeviceMemory, 3> matrices;
    std::array<DevicePointer, 3> addresses{};
    for (size_t i = 0; i < 3; ++i) {
      matrices[i] = allocate(bytes, "the matrices of a measurement");
      addresses[i] = matrices[i].get();
      fill_random(addresses[i], static_cast<size_t>(bytes), stream);
    }
    LibraryProduct gemm;
    gemm.rows = gemm.columns = gemm.depth = n;
    gemm.sums = sums;
    gemm.left = {0, dtype, 0, n, 0, false};
    gemm.right = {1, dtype, 0, n, 0, false};
    gemm.result = {2, dtype, 0, n, 0, false};
    const GemmPlan plan(
        gemm, addresses, {workspace.get(), static_cast<size_t>(kWorkspace)}, AlgorithmTable::get(), stream, [](uint32_t) { return true; },
        ", measuring the GPU");
    seconds = seconds_of(stream, [&] { plan.run(stream, ", measuring the GPU"); });
    best = std::max(best, 2.0 * static_cast<double>(n) * static_cast<double>(n) * static_cast<double>(n) / seconds);
  }
  return best;
}

double copy_rate(Stream stream) {
  const int64_t bytes = Gpu::current().memory_bytes() >= kLargeMemory ? kCopied : kCopied / 16;
  const DeviceMemory from = allocate(bytes, "the source of a measured copy"), to = allocate(bytes, "the target of a measured copy");
  fill_random(from.get(), static_cast<size_t>(bytes), stream);
  const double seconds =
      seconds_of(stream, [&] { EINC_CUDA(cuMemcpyDtoDAsync_v2, to.get(), from.get(), static_cast<size_t>(bytes), stream); });
  return 2.0 * static_cast<double>(bytes) / seconds;
}

}  // namespace

GpuPeak measure_peak(ProductSums f32_sums) {
  const GpuScope scope(Gpu::get());
  const OwnedStream stream = make_stream();
  const DeviceMemory workspace = allocate(kWorkspace, "the workspace of cuBLASLt");
  return {product_rate(DType::f32, f32_sums, stream.get(), workspace), product_rate(DType::bf16, ProductSums::f32, stream.get(), workspace),
          copy_rate(stream.get())};
}

}  // namespace einc::cuda
