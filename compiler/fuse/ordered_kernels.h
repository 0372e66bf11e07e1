// Kernels whose loops have an order: running sums, scatters (which may meet an element twice), the k largest.
#pragma once
#include "compiler/fuse/evaluate.h"

namespace einc {

bool is_ordered(Op op);

// `id`'s kernel. A scatter_add whose updates are added to another value is stored as their sum, `whole`, which lies where that
// value does; otherwise `whole` is `id`.
void build_ordered_kernel(const BoundGraph& graph, NodeId id, NodeId whole, LoopSpace& space, KernelEvaluator& evaluator, BuiltKernel& out);

}  // namespace einc
