// Kernels whose loops have an order: running sums, scatters (which may meet an element twice), the k largest.
#pragma once
#include "compiler/fuse/evaluate.h"

namespace einc {

bool is_ordered(Op op);
void build_ordered_kernel(const BoundGraph& graph, NodeId id, LoopSpace& space, KernelEvaluator& evaluator, BuiltKernel& out);

}  // namespace einc
