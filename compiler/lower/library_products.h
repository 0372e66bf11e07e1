// SPDX-License-Identifier: Apache-2.0
// Which products of matrices are for a library (cuBLASLt).
#pragma once
#include <algorithm>
#include <cstdint>

#include "runtime/base/dtype.h"

namespace einc {

// Of fp8: rows, columns, depth and places in memory are multiples of it.
inline constexpr int64_t kFp8Step = 16;

inline bool is_fp8(DType dtype) { return dtype == DType::f8e4m3 || dtype == DType::f8e5m2; }
inline bool is_fp8_product(DType left, DType right) {
  return is_fp8(left) && is_fp8(right) && !(left == DType::f8e5m2 && right == DType::f8e5m2);
}

// Which products are worth a call, and which rows of their matrices whole lines of memory. Tests take all.
struct LibraryLimits {
  int64_t products = 1 << 20;  // at least so many multiplications
  int64_t side = 8;            // rows, columns and depth of at least so many
  int64_t padded_row = 512;    // bytes of a row
};

inline bool is_worth_library(int64_t batch, int64_t rows, int64_t columns, int64_t depth, const LibraryLimits& limits) {
  return std::min({rows, columns, depth}) >= limits.side && batch * rows * columns * depth >= limits.products;
}

}  // namespace einc
