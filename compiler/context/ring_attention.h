// SPDX-License-Identifier: Apache-2.0
// The pass `ring_attention`: attention whose keys stay in parts (`shard keys over context`), as Ring Attention has it (Liu et al. 2023,
// "Ring Attention with Blockwise Transformers for Near-Infinite Context"). Rows [s] become [n, s/n] and keys [n, t/n] along the mesh axis
// of n devices (ring_layout.h). At step c device r meets the keys and values of device (r + c) mod n, which blocks reach by going to the
// neighbour once a step:
//   M_c = max(M, max_t z),   e = exp(z - M_c),   a = exp(M - M_c),   S_c = a S + sum_t e,   O_c = a O + e V;   the result is O/S
// In the backward, L = M + log S, P = exp(z - L) is final at once, and D = sum dO O. Keys and values go round once more, so that no device
// keeps those of others in between, and with them their gradients, to which each device adds its term:
//   dQ += dZ K;   dK of a block = the sum, in the order in which it meets devices, of dZ^T Q
#pragma once
#include <string>
#include <vector>

#include "compiler/context/ring_positions.h"
#include "compiler/context/split_attention.h"

namespace einc {

struct RingGraph {
  Graph graph;
  std::vector<NodeId> at;               // per node given; invalid: a value per row and key, or one that nothing needs
  std::vector<FusionRefusal> gathered;  // attention whose keys are gathered all the same
};

// Of each attention found whether its keys go round, not gathered.
std::vector<bool> go_round(const Graph& graph, const std::vector<SplitAttention>& found, const Bindings& given);

// Of the attentions whose mesh axis the graph's mesh keeps keys over. `graph` has the form of row_statistics. `order`: that of the rows and
// keys in the graph; what follows from their numbers is made of those of the program.
RingGraph ring_attention(const Graph& graph, const std::vector<SplitAttention>& found, RingOrder order, const Bindings& given);

}  // namespace einc
