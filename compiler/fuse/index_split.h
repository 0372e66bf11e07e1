// SPDX-License-Identifier: Apache-2.0
// Division of an index by a constant: h*64 + d with d < 64 is h and d. Merges and splits of axes need it.
#pragma once
#include <optional>
#include <vector>

#include "compiler/lower/kernel.h"

namespace einc {

struct DividedIndex {
  Affine quotient, remainder;
};

// The two parts of an affine index whose terms either are multiples of the divisor or together stay below it.
std::optional<DividedIndex> divide(const Affine& index, int64_t divisor, const std::vector<LoopAxis>& axes);

// True when the index takes each of 0 .. count-1 exactly once as its loops run.
bool runs_once_over(const Subscript& index, int64_t count, const std::vector<LoopAxis>& axes);

}  // namespace einc
