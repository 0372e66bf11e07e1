// SPDX-License-Identifier: Apache-2.0
// The gradient of attention's scores reads one number a row, D: the sum over the keys of a weight times its gradient. Where O is the
// forward's result and dO its gradient that is the sum of dO times O along a row's elements (FlashAttention 2): a kernel of one pass over
// both, instead of products of all rows with all keys once more. What D is subtracted from is then not rounded to 16 bits: both sum the
// same products, and their difference is often far smaller than they are (in a row of one key it is 0).
#pragma once
#include "compiler/lower/kernel_list.h"

namespace einc {

// Each kernel of attention that folds D over the keys reads it, and a kernel in front of it makes it. Where the forward is not in the list,
// or does not store its result as the product that it is, the fold stays.
void make_row_deltas(KernelList& list);

}  // namespace einc
