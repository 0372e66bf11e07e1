// SPDX-License-Identifier: Apache-2.0
// Orders a kernel's reductions and stores into stages: what depends on no reduction first, then level by level; what loops
// over the same axes at the same level shares a stage. Where some reductions go over rows and others over all rows, the latter are sums of
// parts of the rows, which a second kernel adds up.
#pragma once
#include "compiler/fuse/evaluate.h"

namespace einc {

// Whether a reduction may run again at every point of a loop that its result does not depend on. Nodes are not joined for that; one by
// itself may read such a reduction, which is made where it is read.
enum class Repeats : uint8_t { refused, allowed };

void form_stages(const KernelEvaluator& evaluator, std::vector<Store> stores, Repeats repeats, BuiltKernel& out);

}  // namespace einc
