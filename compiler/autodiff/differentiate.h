// SPDX-License-Identifier: Apache-2.0
// Reverse-mode differentiation inside a graph: gradient nodes are appended as ordinary nodes, so the result can be
// differentiated again. Only what lies on a path from a wanted value to y is built. Each op's rule is one function in a
// rules_*.cpp file with its formula above it.
#pragma once
#include <span>
#include <vector>

#include "compiler/autodiff/custom_gradients.h"
#include "compiler/ir/build.h"

namespace einc {

// d y / d wrt[i] for a scalar y (rank 0, floating), or the product of a cotangent of y with that derivative. A wrt is any floating node of
// the graph, sources and nodes in between; its gradient has exactly its type. Invalid where y does not depend on wrt[i]: the caller decides
// about zeros. Appended nodes have phase backward, label "d <label of the value whose gradient they are>", and the location, module, loop
// context and policy of the forward node whose rule made them. The builder's own origin is left as it was.
struct DifferentiateOptions {
  NodeId cotangent = {};              // what stands for the gradient of y itself, of its type; invalid: 1, and y is a scalar
  CustomGradients* custom = nullptr;  // gradients that the program writes itself
  bool* met_custom = nullptr;         // set when one of them was used
};
std::vector<NodeId> differentiate(Builder& build, NodeId y, std::span<const NodeId> wrt, const DifferentiateOptions& options = {});

}  // namespace einc
