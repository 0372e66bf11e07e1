// SPDX-License-Identifier: Apache-2.0
// Finds attention in a graph: a contraction of rows with keys, elementwise values and folds over the keys with a softmax among
// them, and contractions that take the keys (or the rows) away again; in the backward the same over the gradients. Found by
// following axes, not names or an order of ops, so any layout, mask, scale or grouping of heads will do. A backward may stand by itself,
// with scores of its own and the number that they are lowered by given, as one step of a ring does.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// One kernel's worth of nodes.
struct AttentionNodes {
  std::vector<NodeId> members;  // computed here, in the graph's order
  std::vector<NodeId> results;  // those of them that are contractions over keys or rows
};

// Nodes of softmax's attention (softmax_attention.h).
struct SoftmaxNodes {
  double scale = 1;
  std::optional<int> causal_row;  // the axis of the scores whose number is that of the last key that counts
  NodeId output, log_sum;         // of the forward; no `log_sum`: nothing in the graph is L
  struct Backward {
    NodeId weight_gradient, delta, d_queries, d_keys, d_values;
  };
  std::optional<Backward> backward;
};

struct FoundAttention {
  NodeId scores;  // the contraction whose axes count
  int key = 0;    // the one of them that is folded
  AttentionNodes forward, backward;
  std::vector<NodeId> pairs;  // values per row and key: stored nowhere, made again in the backward
  // For each node made of the scores: which axis of the scores each of its own is; -1 for one of size 1.
  std::unordered_map<uint32_t, std::vector<int>> axes;
  std::optional<SoftmaxNodes> softmax;  // where it is nothing else

  // A backward by itself: what its forward has made, it reads as it would read what anything else made.
  bool is_lone_backward() const { return forward.members.empty(); }
};

struct AttentionSearch {
  std::vector<FoundAttention> found;
  std::vector<FusionRefusal> refusals;  // what looked like one
};

// `roots`: nodes whose values must be in memory at the end; `free`: those made of constants and indices alone.
AttentionSearch find_attention(const BoundGraph& graph, const std::vector<bool>& roots, const std::vector<bool>& free);

}  // namespace einc
