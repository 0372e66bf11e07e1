// SPDX-License-Identifier: Apache-2.0
// An operand of a contraction that lies unevenly, as the windows of an image do: its rows evenly within the innermost of the loops that
// they are, its depths evenly within groups, and the groups evenly.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"

namespace einc {

struct OperandGroups {
  static constexpr int64_t kUnrolled = 16;  // depths, at most, of a group that is unrolled as a whole

  int64_t rows = 1, row_step = 0;      // so many rows lie evenly, so many elements apart
  int64_t depths = 1, depth_step = 0;  // of a group
  int64_t groups = 1, apart = 0;       // so many groups lie evenly, so many elements apart
};

// Nothing where the value is no plain load.
std::optional<OperandGroups> find_groups(const Kernel& kernel, ValueId operand);

}  // namespace einc
