// SPDX-License-Identifier: Apache-2.0
// A product of matrices as a library (cuBLASLt) computes it, with what becomes of its elements before they are stored. A schedule has them
// with values of its graph for buffers (compiler/lower/library_calls.h), an executable with its own buffers.
#pragma once
#include <cstdint>
#include <optional>

#include "runtime/base/dtype.h"

namespace einc {

// A matrix in a buffer, row-major: element (r, c) of batch i at offset + i * batch_stride + r * leading + c, in elements; transposed: r and
// c change places in that.
struct LibraryMatrix {
  uint32_t buffer = 0;
  DType dtype = DType::f32;
  int64_t offset = 0, leading = 1, batch_stride = 0;
  bool transposed = false;
};

// Numbers in a buffer, one after the other from its start.
struct LibraryVector {
  uint32_t buffer = 0;
  DType dtype = DType::f32;
};

// What becomes of a product's elements before they are stored: plus one number per column, plus those of a matrix; then GELU of that in its
// tanh form, with what GELU was of stored in `input`, or that times the slope of GELU at `input`. Or the product as it is, with sums of
// an operand over the depth beside it: of each row of the left one, or of each column of the right one. Matrices lie in their buffers as
// the result does in its own, in its dtype.
enum class LibraryActivation : uint8_t { none, gelu, gelu_slope };
struct LibraryEpilogue {
  std::optional<LibraryVector> bias{};
  std::optional<uint32_t> addend{}, input{};  // buffers
  LibraryActivation activation = LibraryActivation::none;
  std::optional<LibraryVector> left_sums{}, right_sums{};
  bool is_none() const { return !bias && !addend && !left_sums && !right_sums && activation == LibraryActivation::none; }
};

// result[i] = left[i] (rows x depth) times right[i] (depth x columns), summed in f32 (f64 of f64); `tf32` where asked for. Of fp8 times a
// number that lies in a buffer; left lies by rows there, right by columns. An epilogue's result lies by rows, and is no batch.
enum class ProductSums : uint8_t { f32, tf32, f64 };
struct LibraryProduct {
  int64_t batch = 1, rows = 1, columns = 1, depth = 1;
  LibraryMatrix left, right, result;
  ProductSums sums = ProductSums::f32;
  std::optional<uint32_t> scale{};  // buffer of one f32
  LibraryEpilogue epilogue{};
};

}  // namespace einc
