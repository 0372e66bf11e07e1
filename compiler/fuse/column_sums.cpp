// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/column_sums.h"

#include <algorithm>

namespace einc {
namespace {

constexpr int64_t kMostParts = 528;  // four for each multiprocessor of a large GPU
constexpr int64_t kRowsOfAPart = 8;  // at least: the sums of a part are written and read once more
constexpr int64_t kFewestParts = 2;

}  // namespace

uint16_t ColumnSums::buffer_of(uint16_t reduction, Kernel& kernel) {
  kernel.buffers.push_back({kernel.reductions[reduction].dtype, BufferAccess::write, 0});
  return static_cast<uint16_t>(kernel.buffers.size() - 1);
}

Kernel add_columns(const ColumnSums& columns, Kernel& kernel) {
  const int64_t rows = trips(kernel, bits(kernel.outer)), row = trips(kernel, bits(columns.axes));
  const int64_t parts = std::clamp(rows / kRowsOfAPart, kFewestParts, kMostParts);
  const auto part = static_cast<AxisId>(kernel.axes.size());
  kernel.axes.push_back({parts, Name("part")});
  kernel.part = part;
  Affine place;
  int64_t stride = 1;
  for (size_t k = columns.axes.size(); k-- > 0; stride *= kernel.extent(columns.axes[k]))
    place = place + Affine::of_axis(columns.axes[k], stride);
  place = place + Affine::of_axis(part, row);
  std::vector<uint16_t> buffers;
  for (Stage& stage : kernel.stages)
    for (Store& store : stage.stores)
      if (store.mode == StoreMode::sum) {
        store.index = place;
        kernel.buffers[store.buffer].count = parts * row;
        buffers.push_back(store.buffer);
      }
  std::sort(buffers.begin(), buffers.end());  // as they were made: in the order of the sums

  Kernel sums = kernel;
  sums.part.reset();
  sums.outer = columns.axes;
  Stage adding{{part}, columns.reductions, {}, false}, made{{}, {}, columns.stores, false};
  sums.stages = {std::move(adding), std::move(made)};
  for (size_t k = 0; k < columns.reductions.size(); ++k) {
    const uint16_t r = columns.reductions[k];
    Scalar load;
    load.kind = ScalarKind::load;
    load.dtype = sums.reductions[r].dtype;
    load.slot = buffers[k];
    load.index = place;
    insert_first(sums, {load});
    sums.reductions[r].value = 0;
    sums.buffers[buffers[k]].access = BufferAccess::read;
  }
  return sums;
}

}  // namespace einc
