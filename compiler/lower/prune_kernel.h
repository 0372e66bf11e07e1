// A kernel without what no store needs: values, reductions, axes and buffers, the rest renumbered in order.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

// The kernel is not known as a contraction yet. Gives the buffers that are left, by their numbers before.
std::vector<uint16_t> prune_kernel(Kernel& kernel);

}  // namespace einc
