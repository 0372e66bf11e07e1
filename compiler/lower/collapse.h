// SPDX-License-Identifier: Apache-2.0
// Neighbouring loops that every index walks as one become one loop: an elementwise kernel over [b s d] loops over b*s*d.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

void collapse_axes(Kernel& kernel);

}  // namespace einc
