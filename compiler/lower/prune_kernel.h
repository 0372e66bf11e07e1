// SPDX-License-Identifier: Apache-2.0
// A kernel without what no store needs: values, reductions, axes and buffers, the rest renumbered in order.
#pragma once
#include "compiler/lower/kernel_list.h"

namespace einc {

// The kernel is not known as a contraction yet. Gives the buffers that are left, by their numbers before.
std::vector<uint16_t> prune_kernel(Kernel& kernel);

// `kernel`, which has the buffers of k's, instead of k's own: without what no store needs, nor products of attention that no step needs.
void replace_kernel(GraphKernel& k, Kernel kernel);

// Whoever used value i uses value `now[i]`, which lies no further behind.
void rename_values(Kernel& kernel, const std::vector<ValueId>& now);

}  // namespace einc
