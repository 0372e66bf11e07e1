// SPDX-License-Identifier: Apache-2.0
// Attention of a sequence that a mesh axis splits: its rows and its keys lie in parts along the same devices (context parallelism), and a
// row needs all keys. Read off a partition that knows nothing of it.
#pragma once
#include <vector>

#include "compiler/fuse/find_attention.h"
#include "compiler/partition/factors.h"
#include "compiler/partition/partition.h"

namespace einc {

struct SplitAttention {
  FoundAttention attention;  // nodes are those of the graph that was partitioned
  int mesh_axis = 0;
  int row = 0;                  // the scores' axis whose parts lie on other devices than those of their keys
  AxisList row_over, key_over;  // mesh axes that split rows and keys
};

// Of a factor's labels, the scores' axis that each one is; -1: none of them.
std::vector<int> axes_of_labels(const Node& node, uint32_t index, const Factors& factors, const FoundAttention& found);

// Of two numbers which is less, whether or not they may be equal.
bool compares_order(const Node& node);

// By node: whether it is made of constants and indices alone.
std::vector<bool> free_nodes(const Graph& graph);

// With numbers for dims, which `given` and defaults set, and what its roots need.
BoundGraph bound_by_roots(const Graph& graph, const Bindings& given);

// Without dims that have no value nothing is found.
std::vector<SplitAttention> split_attention(const Graph& graph, const Partitioned& first, const Bindings& given);

// Rows stay where they are, and with them the scores: keys and values are put together on every device, their gradients summed and taken in
// parts.
PartitionHints rows_in_place(const Graph& graph, const std::vector<SplitAttention>& found);

}  // namespace einc
