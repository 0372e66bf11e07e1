// SPDX-License-Identifier: Apache-2.0
// Sizes by which forming kernels suits the machine that runs them. What is done at all is its list of passes (fuse/schedule_passes.h).
#pragma once
#include <cstdint>
#include <optional>

#include "compiler/lower/library_products.h"
#include "compiler/lower/processor.h"
#include "runtime/base/gpu_shape.h"

namespace einc {

inline constexpr int64_t kCacheLine = 64;  // bytes that a processor's caches move at once

// When reductions are divided into parts (divide_reductions).
struct DivideLimits {
  int64_t points = 16;         // outer points that keep the machine busy
  int64_t elements = 1 << 16;  // worth a launch of their own
  int64_t most_parts = 4096, enough_parts = 256, smallest_part = 2048;
  int64_t most_points = INT64_MAX;  // of the kernel of parts
};

// Whether what reduces a whole value joins the kernel that goes over it anyway: what that stores is then divided among the parts.
enum class WholeReductions : uint8_t { alone, joined };

// What the order of a kernel's sums follows from: their loops alone, or all of the kernel (how threads divide rows, say).
enum class SumOrder : uint8_t { of_loops, of_kernel };

struct KernelTarget {
  DivideLimits divide_rows{}, divide_columns{};  // of what lies side by side along the reduced loops, or along others
  // Of products of matrices, which are few tiles of sums: with more points than those; with a library, such as it does not multiply.
  DivideLimits divide_products{.points = 1024, .elements = 1 << 22, .most_parts = 64, .enough_parts = 16};
  // Such contractions are kernels of their own, for a library that multiplies matrices as they lie in memory.
  std::optional<LibraryLimits> library{};
  // Parts of sums that take no more bytes have a place of their own, so that launches of equal kernels may join.
  int64_t own_parts = 0;
  // A kernel that goes over rows also adds up what it makes of all of them, as many elements of sums as its threads hold: each part of its
  // rows leaves sums of its own, which a second kernel adds.
  int64_t column_sums = 0;
  double flops_per_byte = 9;  // peak over bandwidth: 0.55 TFLOP/s and 63 GB/s of two Zen 5 cores (cost/devices.cpp)
  SumOrder sum_order = SumOrder::of_loops;
  WholeReductions whole_reductions = WholeReductions::alone;  // follows from the list of passes
  std::optional<GpuShape> gpu{};                              // that kernels' threads are planned for
  Processor processor{};                                      // that their loops are planned for, without a GPU
};

}  // namespace einc
