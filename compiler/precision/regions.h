// SPDX-License-Identifier: Apache-2.0
// Parts of a graph that a precision policy treats as one: what computes the loss after the last contraction, and what only
// sums up a parameter's gradient.
#pragma once
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// Forward nodes from which only the loss is reached, contractions excluded: cross-entropy, squared errors, means.
std::vector<bool> loss_region(const Graph& graph);

// Per node the dtype that a gradient's parameter has, where the node is that gradient or is only added, moved or scaled
// into it; `real` elsewhere.
std::vector<DType> gradient_region(const Graph& graph);

// Per node whether it is a param, or a cast or view of one. `known`: inputs of a scan's body that stand for such values; may be empty.
std::vector<bool> weight_region(const Graph& graph, const std::vector<bool>& known);

}  // namespace einc
