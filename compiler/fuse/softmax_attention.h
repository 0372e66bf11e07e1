// SPDX-License-Identifier: Apache-2.0
// Which attention of a graph is softmax's and nothing else: O = P V with P = softmax(scale Q K^T), of all keys or of those up to the row's
// own number, and, once `row_statistics` has changed it, a backward that reads L = max + log(sum) and D = sum of dO O of each row:
//   P = exp(scale S - L), dP = dO V^T, dS = scale P (dP - D), dQ = dS K, dK = dS^T Q, dV = P^T dO.
// Roundings to 16 or 32 bits in between are let pass, as every library's attention rounds there.
#pragma once
#include <optional>

#include "compiler/fuse/find_attention.h"

namespace einc {

// exp(x - max) / sum, of a pair of row and key.
struct SoftmaxWeight {
  NodeId difference, exponential, max, sum;
};
// Of a quotient whose maximum and sum are folds over the keys.
std::optional<SoftmaxWeight> softmax_weight(const Graph& graph, const FoundAttention& found, NodeId quotient);

std::optional<SoftmaxNodes> find_softmax(const BoundGraph& graph, const FoundAttention& found);

// The value that was rounded to `id`, if any was.
NodeId before_rounding(const Graph& graph, NodeId id);

}  // namespace einc
