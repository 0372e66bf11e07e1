// SPDX-License-Identifier: Apache-2.0
// The pass `library_products`: which contractions of a list a library multiplies.
#pragma once
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"
#include "compiler/lower/library_products.h"

namespace einc {

// Those within `limits` whose matrices lie as the library takes them (map_gemm).
void find_library_products(const BoundGraph& graph, const LibraryLimits& limits, KernelList& list);

// How a kernel multiplies what is f32: in tf32 where the policy of all that it contracts says so.
ProductSums f32_products(const BoundGraph& graph, const GraphKernel& kernel);

}  // namespace einc
