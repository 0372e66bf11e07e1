// Orders a kernel's reductions and stores into stages: what depends on no reduction first, then level by level; what loops
// over the same axes at the same level shares a stage. Where some reductions go over rows and others over all rows, the latter are sums of
// parts of the rows, which a second kernel adds up.
#pragma once
#include "compiler/fuse/evaluate.h"

namespace einc {

void form_stages(const KernelEvaluator& evaluator, std::vector<Store> stores, BuiltKernel& out);

}  // namespace einc
