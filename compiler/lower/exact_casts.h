// SPDX-License-Identifier: Apache-2.0
// Scores of attention that were rounded to bf16 and are then scaled by a power of two, or masked, are bf16 numbers: no bit is left to
// round, but in numbers below 2^-126, which bf16 holds with fewer digits; their exponential is 1 either way. A tenth of the instructions of
// attention on tensor cores rounded them again.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

// Of a kernel of attention.
void drop_exact_casts(Kernel& kernel);

}  // namespace einc
