// SPDX-License-Identifier: Apache-2.0
// Launches that one product with an epilogue does as well (CudaExecutable::fused): a product and what is made of it element by element, or
// a product and the sum of one of its operands over the depth, as a bias' gradient is.
#pragma once
#include "compiler/codegen/cuda/join_launches.h"
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// Which is faster only a GPU can tell, so that the launches stay as they are. In bf16 and f16 the epilogue rounds once what the launches
// round twice, the product before the rest; but a bias is rounded to the result's format, and GELU is of what has not been rounded yet.
// What a row's kernel does on its way (a norm that adds the residual, a classifier its bias) stays there: it reads the product anyway.
// Only launches whose work may be done at another's place are found: `written`, by launch, as join_launches, which was before.
std::vector<CudaFusedProduct> find_fused_products(const CudaExecutable& executable, const BoundGraph& graph, const KernelList& list,
                                                  const std::vector<WrittenBuffers>& written);

}  // namespace einc
