// SPDX-License-Identifier: Apache-2.0
// Sums of whole tensors in one kernel (a norm of all gradients): each runs along its own tensor's elements as they lie in memory. Loops
// that sums of different layouts share by their extents alone would take all but one of them in strides.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

// Kernels of one point with several reductions; those whose loads read a block of elements, each once, get one axis over it.
void flatten_sums(Kernel& kernel);

}  // namespace einc
