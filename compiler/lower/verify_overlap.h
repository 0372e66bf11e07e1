// SPDX-License-Identifier: Apache-2.0
// Proves that a kernel still computes the same when some of its buffers overlap in memory. The order that a kernel fixes is the one of
// kernel.h: outer points run in any order, at a point stage after stage, the elements of a stage in any order, at an element all loads
// before all stores. A load is safe when every store to the same byte comes after it in that order. What cannot be proved is a problem.
#pragma once
#include <span>
#include <string>

#include "compiler/lower/kernel.h"

namespace einc {

// `offsets`: of each buffer in the mapping, in bytes; kNoPlace: none (scratch). Returns "" or the first overlap that loses a value.
inline constexpr int64_t kNoPlace = -1;
std::string verify_overlap(const Kernel& kernel, std::span<const int64_t> offsets);

}  // namespace einc
