// SPDX-License-Identifier: Apache-2.0
// Products on tensor cores that no library does: sums over windows, operands that are computed where they are read, results of which more
// is made. A block makes a tile of the result; its operands' tiles come into shared memory some steps of the depth ahead.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"
#include "runtime/base/dtype.h"
#include "runtime/base/gpu_shape.h"
#include "runtime/program/library_product.h"

namespace einc {

struct ProductTiles {
  static constexpr int kBuffers = 3;  // one is multiplied while two are filled

  struct Operand {
    bool by_depth = false;  // neighbours in shared memory are neighbours along the depth, not along its rows or columns
    bool copied = false;    // 16 bytes at a time as they lie in memory; else what it is made of is computed element by element
  };

  Kernel kernel;  // with all rows, all columns and all depth axes as one axis each
  AxisId row = 0, column = 0, depth = 0;
  DType dtype = DType::bf16;  // f32: multiplied in tf32
  Operand left, right;
  int rows = 128, columns = 128;  // of a tile
  int64_t batches = 1;

  int vector() const { return 16 / bytes_of(dtype); }  // elements of 16 bytes
  int step() const { return 4 * vector(); }            // of the depth at a time
  int multiplied() const { return 2 * vector(); }      // of it by one instruction
  // A warp has 32 columns, or all 16.
  int warps() const { return rows * columns >= 64 * 128 ? 8 : 4; }
  int warps_across() const { return columns < 64 ? 1 : columns / 32; }
  int warps_down() const { return warps() / warps_across(); }
  int warp_rows() const { return rows / warps_down(); }
  int warp_columns() const { return columns / warps_across(); }
  int threads() const { return 32 * warps(); }

  // Rows in shared memory do not share banks.
  int pitch(const Operand& operand, int width) const {
    return operand.by_depth ? step() + vector() : width + (dtype == DType::f32 ? 8 : vector());
  }
  int elements(const Operand& operand, int width) const { return pitch(operand, width) * (operand.by_depth ? width : step()); }
  int64_t shared_bytes() const { return int64_t{kBuffers} * (elements(left, rows) + elements(right, columns)) * bytes_of(dtype); }
  int64_t row_tiles() const { return (kernel.extent(row) + rows - 1) / rows; }
  int64_t column_tiles() const { return (kernel.extent(column) + columns - 1) / columns; }
  int64_t blocks() const { return batches * row_tiles() * column_tiles(); }
};

// Nothing for contractions of other dtypes, of f32 where it may not be multiplied in tf32, and for small ones.
std::optional<ProductTiles> tile_product(const Kernel& kernel, const GpuShape& gpu, ProductSums f32_products);

}  // namespace einc
