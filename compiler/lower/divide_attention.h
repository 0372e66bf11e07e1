// SPDX-License-Identifier: Apache-2.0
// Attention that makes sums over its keys and sums over its rows as two kernels: blocks of rows for the one, blocks of keys for the
// other, so that each sum is one block's. What the first folds for each row the second reads.
#pragma once
#include "compiler/lower/kernel_list.h"

namespace einc {

void divide_attention(KernelList& list);

}  // namespace einc
