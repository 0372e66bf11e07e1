// SPDX-License-Identifier: Apache-2.0
// Logarithms of sums of exponentials as kernels compute them. With m the maximum, 0 where it is not finite, z = x - m, and n how many z are
// 0:
//   L = log1p(sum(exp(z) of the others) + (n - 1)),   log(sum(exp(x))) = L + m
// L keeps all digits where one element outweighs the others, and a row of infinities has the sum's limit. What subtracts the logarithm or
// is subtracted from it takes m first and then L: log_softmax(x) = (x - m) - L, cross_entropy = (m - x[t]) + L, and the gradient exp(z -
// L). The graph that costs are told of has the plain form: max, sub, exp, sum, log, add.
#pragma once
#include <memory>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

struct ExactLogSums {
  std::unique_ptr<const Graph> graph;
  std::vector<NodeId> at;  // per node given: its place in `graph`
};

// Without a graph where there is no such logarithm.
ExactLogSums exact_log_sums(const Graph& graph);

}  // namespace einc
