// SPDX-License-Identifier: Apache-2.0
// Contractions for a library that multiplies matrices as they lie in memory, and where values in between lie so that it can: the
// axes of a contraction that both of two tensors have (its rows, columns, depth, batch) must be neighbours in both, in one order.
#pragma once
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

// Whether a value is read through windows that share elements: no places of theirs are one dimension in memory.
bool has_overlapping_windows(const BoundGraph& graph, NodeId x);
// Products of fp8 are for it where rows, columns and depth are multiples of 16 and not both operands e5m2.
bool suits_library(const BoundGraph& graph, NodeId id, const KernelTarget& target);
// Whether a contraction would be if its operands were of fp8.
bool suits_library_as_fp8(const BoundGraph& graph, NodeId id, const KernelTarget& target);
// Whether a node is a product of fp8 operands times a number: the library multiplies by that, too.
bool scales_product(const BoundGraph& graph, NodeId id, NodeId product);
// Whether a node sums an operand of a library's product over what the product sums over: the library does both in one call.
bool sums_operand(const BoundGraph& graph, NodeId id, NodeId product, const KernelTarget& target);

// Fills graph.order of values that no one outside sees: not `roots`, sources or views.
void choose_layouts(BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target);

// Fills graph.padding of matrices in between whose rows would start at odd places, so that a library reads them in whole vectors.
void pad_rows(BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target);

}  // namespace einc
