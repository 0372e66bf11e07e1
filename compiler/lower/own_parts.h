// SPDX-License-Identifier: Apache-2.0
// The pass `own_parts`: reduced parts of small sums get places of their own, where others share one that lasts from the kernel that makes
// them to those that add them up. So launches of equal kernels may join, and sums may wait.
#pragma once
#include "compiler/lower/kernel_list.h"

namespace einc {

// Parts that take no more bytes than `most`, of launches that always run.
void give_parts_places(KernelList& list, int64_t most);

}  // namespace einc
