// SPDX-License-Identifier: Apache-2.0
// A contraction as tiles in shared memory: a block makes a tile of the result, its threads a few elements each.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"

namespace einc {

struct ContractionTiles {
  Kernel kernel;  // with all rows, all columns and all depth axes as one axis each
  AxisId row = 0, column = 0, depth = 0;
  int tile_rows = 64, tile_columns = 64, tile_depth = 16;
  int thread_rows = 4, thread_columns = 4;
  int64_t batches = 1;

  int threads() const { return tile_rows / thread_rows * (tile_columns / thread_columns); }
  int64_t row_tiles() const { return (kernel.extent(row) + tile_rows - 1) / tile_rows; }
  int64_t column_tiles() const { return (kernel.extent(column) + tile_columns - 1) / tile_columns; }
  int64_t blocks() const { return batches * row_tiles() * column_tiles(); }
};

// Nothing for contractions that plain loops do as well.
std::optional<ContractionTiles> tile_cuda_contraction(const Kernel& kernel);

}  // namespace einc
