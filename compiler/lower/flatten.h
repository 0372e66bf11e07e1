// SPDX-License-Identifier: Apache-2.0
// Several loops as one: an axis that runs over all combinations of others.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

// A new axis over the product of `axes` (outermost first; none: one step). Indices that step over them evenly become multiples of
// the new axis; others are computed from its quotients and remainders. The kernel's lists of loops are left to the caller.
AxisId flatten(Kernel& kernel, const std::vector<AxisId>& axes);

}  // namespace einc
