// SPDX-License-Identifier: Apache-2.0
// Zeros around an image that a product on tensor cores sums windows of: no padded copy is stored, the product's loads ask whether an
// element lies inside (codegen/cuda/product_tiles).
#pragma once
#include <memory>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

// With casts to the products' format before the padding, not behind it, so that whoever makes the image stores it in that; null where there
// are none.
std::unique_ptr<const Graph> cast_before_padding(const BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target);

// Has such padding made where it is read.
void pad_where_read(BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target);

}  // namespace einc
