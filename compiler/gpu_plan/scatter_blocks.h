// SPDX-License-Identifier: Apache-2.0
// A scatter whose positions no outer point changes: each block has some rows of the table, looks through all positions in order, and adds
// (or sets) what falls on its rows. So elements that meet do so in one thread, in their order. Neighbours in the table are different
// blocks': the most frequent words of a vocabulary often stand side by side.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"
#include "runtime/base/gpu_shape.h"

namespace einc {

struct ScatterBlocks {
  size_t stage = 0;  // the ordered one; those before it fill rows of the table
  ValueId position = kNoValue;
  int64_t table_rows = 0, positions = 1, points = 1;
  int threads = 32;    // of a block, one outer point each
  int64_t chunks = 1;  // blocks of points
  int64_t rows = 1;    // of the table in a block, `apart()` apart

  int64_t apart() const { return (table_rows + rows - 1) / rows; }
  int64_t blocks() const { return apart() * chunks; }
};

// Nothing for kernels of another form, or few positions.
std::optional<ScatterBlocks> plan_scatter(const Kernel& kernel, const GpuShape& gpu);

}  // namespace einc
