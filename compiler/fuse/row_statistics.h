// SPDX-License-Identifier: Apache-2.0
// What the backward of attention knows of a row, as FlashAttention-2 has it (Dao 2023): the logarithm of the sum of its exponentials, L,
// and D, which the softmax's gradient subtracts. For weights P = exp(x - max) / sum of a row, its result O = P V and the gradient dO:
//   P = exp(x - L), L = max + log(sum);   D = sum over keys of P dP, dP = dO V^T, is the sum of dO O over a row's elements.
// So the forward leaves one number of a row, not two, the backward divides nothing, and no loop over keys comes before D is known. The
// graph that costs are told of has the plain form.
#pragma once
#include <memory>
#include <vector>

#include "compiler/fuse/find_attention.h"

namespace einc {

struct RowStatistics {
  std::unique_ptr<const Graph> graph;
  std::vector<NodeId> at;  // per node given: its place in `graph`
};

// Of attention that is one kernel in each phase. Without a graph where there is none with a backward.
RowStatistics use_row_statistics(const BoundGraph& graph, const std::vector<FoundAttention>& attentions);

}  // namespace einc
