// SPDX-License-Identifier: Apache-2.0
// Several loops as one: an axis that runs over all combinations of others.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

// A new axis over the product of `axes` (outermost first; none: one step). Indices that step over them evenly become multiples of
// the new axis; others are computed from its quotients and remainders. The kernel's lists of loops are left to the caller.
AxisId flatten(Kernel& kernel, const std::vector<AxisId>& axes);

// What is left of a contraction's loops once its rows, columns and depth are one axis each.
struct FlatContraction {
  AxisId row = 0, column = 0, depth = 0;
  int64_t batches = 1;
};
// Of a kernel with a contraction: its loops become batch, row and column around stage 0 over the depth.
FlatContraction flatten_contraction(Kernel& kernel);

}  // namespace einc
