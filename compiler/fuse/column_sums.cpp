// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/column_sums.h"

#include <algorithm>

#include "compiler/gpu_plan/thread_plan.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

// Four blocks for each multiprocessor of a large GPU, or two, where registers leave room for no more: a warp has a row then, and its
// threads hold many words of it and of its sums. ptxas gives norms' backwards of 120 and 144 words 168 to 247 registers. From
// kSumRegisters words on a block of threads divides a row.
constexpr int64_t kMostParts = 528, kFewerParts = 264;
constexpr int64_t kManyWords = 112, kLanes = 32;
constexpr int64_t kRowsOfAPart = 8;  // at least: the sums of a part are written and read once more
constexpr int64_t kFewestParts = 2;

// 32-bit words that a thread of a warp holds: its share of the sums and of what is loaded along a row.
int64_t words_of_thread(const Kernel& kernel, const std::vector<AxisId>& row) {
  const std::vector<uint64_t> axes = axes_of_values(kernel);
  int64_t bytes = 0;
  for (const Stage& stage : kernel.stages) bytes += 4 * std::ranges::count(stage.stores, StoreMode::sum, &Store::mode);
  for (size_t i = 0; i < axes.size(); ++i)
    if (kernel.values[i].kind == ScalarKind::load && axes[i] & bits(row)) bytes += bytes_of(kernel.buffers[kernel.values[i].slot].dtype);
  return trips(kernel, bits(row)) * bytes / (4 * kLanes);
}

int64_t most_parts(const Kernel& kernel, const std::vector<AxisId>& row) {
  const int64_t words = words_of_thread(kernel, row);
  return trips(kernel, bits(row)) <= kWarpLoop && words > kManyWords && words <= kSumRegisters ? kFewerParts : kMostParts;
}

}  // namespace

uint16_t ColumnSums::buffer_of(uint16_t reduction, Kernel& kernel) {
  kernel.buffers.push_back({kernel.reductions[reduction].dtype, BufferAccess::write, 0});
  return static_cast<uint16_t>(kernel.buffers.size() - 1);
}

Kernel add_columns(const ColumnSums& columns, Kernel& kernel) {
  const int64_t rows = trips(kernel, bits(kernel.outer)), row = trips(kernel, bits(columns.axes));
  const int64_t parts = std::clamp(rows / kRowsOfAPart, kFewestParts, most_parts(kernel, columns.axes));
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
