// SPDX-License-Identifier: Apache-2.0
// Kernels whose loops have an order: running sums, scatters (which may meet an element twice), the k largest.
#pragma once
#include "compiler/fuse/evaluate.h"

namespace einc {

bool is_ordered(const BoundGraph& graph, NodeId id);

// The kernel of the group's first member. Of a second one, a scatter_add's updates are added to another value, and their sum
// lies where that value does. Of a group with a base, a scatter_set's elements are written into it.
void build_ordered_kernel(const BoundGraph& graph, const Group& group, LoopSpace& space, KernelEvaluator& evaluator, BuiltKernel& out);

}  // namespace einc
