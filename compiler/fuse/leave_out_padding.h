// SPDX-License-Identifier: Apache-2.0
// Products with the zeros around an image are not made where a processor sums windows of it. A window at the edge reads fewer elements:
// of 3 x 3 ones over 7 x 7 places 18 % of the products are with zeros, over 14 x 14 9 %. Sums are the same, for zeros add nothing to them;
// weights that are not finite are not multiplied by what is not there. Sums over places, as weights' gradients are, multiply the zeros:
// their rows would have to leave out depths of each line. So do matrix tiles and pairs of bf16, whose depths go by 32.
#pragma once
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"
#include "compiler/lower/processor.h"

namespace einc {

// Fills Contraction::padded of kernels whose tiles leave such products out.
void leave_out_padding(const BoundGraph& graph, const Processor& processor, KernelList& list);

}  // namespace einc
