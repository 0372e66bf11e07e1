// SPDX-License-Identifier: Apache-2.0
// An elementwise kernel whose innermost loop is shorter than a vector, as over a group's four channels, walks the loop around it in the
// same vectors where its stores lie side by side along both. What depends on one of the two alone is then read by the quotient or
// remainder.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

// `lanes`: of a vector of f32. Others are left as they are.
void widen_lanes(Kernel& kernel, int64_t lanes);

}  // namespace einc
