// SPDX-License-Identifier: Apache-2.0
// What attention keeps of a row's softmax for its backward: m + log(l) in the place of the maximum m and the sum l of exponentials, as in
// FlashAttention 2. A backward then makes a weight by one exponential, exp(x - (m + log l)), reads one number a row, and divides nothing.
#pragma once
#include "compiler/lower/kernel_list.h"

namespace einc {

// Of forwards whose maxima and sums serve for nothing but those weights; `roots` are read after the last kernel. The maximum's buffer holds
// what is kept.
void keep_log_sums(KernelList& list, const std::vector<NodeId>& roots);

}  // namespace einc
