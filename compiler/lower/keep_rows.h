// SPDX-License-Identifier: Apache-2.0
// What one stage computes along a row and a later one needs again is kept in scratch, where computing it costs more than reading it:
// the exponentials of a softmax, which are summed and then divided by their sum.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

// Appends a scratch buffer for each value that is kept. Rows of at most 16384 elements that lie side by side in memory.
void keep_rows(Kernel& kernel);

// Of a scratch buffer, in whole cache lines; of all of a kernel's, which lie one after another.
int64_t row_bytes(const BufferUse& row);
int64_t row_bytes(const Kernel& kernel);

}  // namespace einc
