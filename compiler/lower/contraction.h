// SPDX-License-Identifier: Apache-2.0
// Recognises a product summed over axes in a kernel's stages and sorts its axes into batch, rows, columns and depth.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

// Fills kernel.contraction when the kernel is one such sum followed by stores at the outer points.
void find_contraction(Kernel& kernel);

}  // namespace einc
