// SPDX-License-Identifier: Apache-2.0
// The pass `delay_sums`: what a kernel makes of reduced parts may be wanted much later, as the largest elements of a step's fp8 operands
// are at its end. Kernels that make nothing but numbers of parts wait for who reads them, so that equal ones may be one launch.
#pragma once
#include "compiler/lower/kernel_list.h"

namespace einc {

// Moves them to right before the first launch that touches what they touch, or that does not always run. Values but parts and numbers live
// no longer for it.
void delay_sums(KernelList& list);

}  // namespace einc
