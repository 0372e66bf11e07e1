// SPDX-License-Identifier: Apache-2.0
// Stores whose neighbours in memory are others than those of what a kernel reads: in tiles of both axes either side is touched in whole
// lines.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"

namespace einc {

// Axes that neighbours lie along in what is read, and in what is stored.
struct TransposedAxes {
  AxisId along = 0, across = 0;
};

// Of a store at points of these loops, read along `along`: the axis that its neighbours lie along instead; nothing when it has none.
std::optional<AxisId> transposed_axis(const Store& store, const std::vector<AxisId>& loops, AxisId along);

// Sides of a tile of so many steps: divisors of the extents.
struct TransposeTile {
  int64_t along = 1, across = 1;
};
TransposeTile transpose_tile(const Kernel& kernel, TransposedAxes axes);

// Divides an axis into `outer` ranges, loops of the axis that is made; the axis itself is what remains inside of them.
AxisId split_axis(Kernel& kernel, AxisId axis, int64_t outer);

// An elementwise kernel that transposes as one whose outer points are tiles; nothing for others.
std::optional<Kernel> tile_transposes(const Kernel& kernel);

}  // namespace einc
