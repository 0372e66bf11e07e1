// SPDX-License-Identifier: Apache-2.0
// What follows from a contraction's tiles: where its panels lie, and what each thread needs for them.
#include "compiler/lower/flatten.h"
#include "compiler/lower/tile_contraction.h"
#include "runtime/base/dtype.h"
#include "runtime/base/round_up.h"

namespace einc {

void TiledContraction::flatten_axes() {
  const FlatContraction flat = flatten_contraction(kernel);
  row = flat.row, column = flat.column, depth = flat.depth, batches = flat.batches;
}

void TiledContraction::turn() {
  Contraction& c = *kernel.contraction;
  std::swap(c.left, c.right);
  std::swap(c.rows, c.columns);
  std::swap(row, column);
  c.padded.clear();  // of what were rows
}

int64_t TiledContraction::left_pitch() const {
  return left == PanelSource::by_depth ? round_up(block_depth, lanes) + lanes : block_depth + divide_up(lanes, tile_rows);
}

int64_t TiledContraction::left_elements() const {
  if (left == PanelSource::in_place) return 0;
  if (panels_in_tiles()) return round_up(block_rows, std::max(tile_rows, kTileRows)) * tile_depths() * kTileDepth / 2;
  return block_rows * left_pitch();
}

int64_t TiledContraction::right_elements() const {
  if (panels_in_tiles()) return tile_depths() * kTileDepth * panel_columns() / 2;
  return right == PanelSource::in_place ? 0 : round_up(block_depth, lanes) * tile_columns();
}

int64_t TiledContraction::partial_elements() const {
  if (!sums_in_parts()) return 0;
  return block_rows * (depth_in_blocks() ? block_columns : tile_columns());
}

int64_t TiledContraction::scratch_bytes() const {
  return (round_up(left_elements(), lanes) + right_panels * right_elements() + partial_elements()) * bytes_of(dtype);
}

const Scalar* largest_load(const TiledContraction& plan, ValueId value) {
  const Kernel& kernel = plan.kernel;
  std::vector<bool> used(kernel.values.size(), false);
  used[value] = true;
  const Scalar* best = nullptr;
  for (size_t i = value + 1; i-- > 0;) {
    if (!used[i]) continue;
    const Scalar& v = kernel.values[i];
    for (ValueId x : v.operands) used[x] = true;
    if (v.kind == ScalarKind::load && (!best || kernel.buffers[v.slot].count > kernel.buffers[best->slot].count)) best = &v;
  }
  return best && best->index.dynamic.empty() ? best : nullptr;
}

}  // namespace einc
