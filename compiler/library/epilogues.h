// SPDX-License-Identifier: Apache-2.0
// The pass `epilogues`: kernels that one product with an epilogue does as well (LibraryCalls::fused): a product and what is made of it
// element by element, or a product and the sum of one of its operands over the depth, as a bias' gradient is.
#pragma once
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// Which is faster only a GPU can tell, so that the kernels stay as they are. In bf16 and f16 the epilogue rounds once what the kernels
// round twice, the product before the rest; but a bias is rounded to the result's format, and GELU is of what has not been rounded yet.
// What a row's kernel does on its way (a norm that adds the residual, a classifier its bias) stays there: it reads the product anyway.
// What the product reads is held until it runs, unless that would keep it in memory for other kernels in between. `roots`: values read
// after the last kernel.
void find_epilogues(const BoundGraph& graph, const std::vector<NodeId>& roots, KernelList& list);

}  // namespace einc
