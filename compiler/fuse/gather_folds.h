// SPDX-License-Identifier: Apache-2.0
// Gradients of windows as windows. What a convolution's images get is written as a product into patches that are added where they overlap,
//   x[y] = sum over p + k = y of sum over o of t[p, o] * w[k, o],
// which stores every patch. Gathered by the place they go to it is a convolution of `t`, padded, with the kernel turned round:
//   x[y] = sum over k, o of t[y - k, o] * w[k, o],
// one contraction that stores x alone. Of windows by s places, y = s * p + k, places with the same remainder are such a convolution each,
// with every s-th k of the kernel, and lie side by side:
//   x[s * m + r] = sum over j, o of t[m - j, o] * w[r + s * j, o].
// The graph that costs are told of has the plain form; the products are the same ones, but for those with padding at the border.
#pragma once
#include <functional>
#include <memory>
#include <vector>

#include "compiler/lower/bound_graph.h"

namespace einc {

struct GatheredFolds {
  std::unique_ptr<const Graph> graph;
  std::vector<NodeId> at;  // per node given: its place in `graph`
};

// Without a graph where there is no such fold. `roots`: nodes whose values must be in memory at the end; `wanted`: which products.
GatheredFolds gather_folds(const BoundGraph& graph, const std::vector<NodeId>& roots, const std::function<bool(NodeId)>& wanted);

}  // namespace einc
