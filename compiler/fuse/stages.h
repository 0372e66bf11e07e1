// Orders a kernel's reductions and stores into stages: what depends on no reduction first, then level by level; what loops
// over the same axes at the same level shares a stage.
#pragma once
#include "compiler/fuse/evaluate.h"

namespace einc {

void form_stages(const KernelEvaluator& evaluator, std::vector<Store> stores, Kernel& kernel);

}  // namespace einc
