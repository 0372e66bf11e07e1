// SPDX-License-Identifier: Apache-2.0
// The pass `zigzag_attention`: causal attention of a sequence in parts, with the same work on every device. In contiguous parts the last
// device's rows see all keys and the first one's few, so that all wait for the last. Here whatever has the sequence as an axis has it in
// zigzag order (partition/zigzag.h) from the program's edge on, where inputs, params and results are cut and put together so and nothing
// moves. All but attention is the same in any order of rows. Attention's keys and values are gathered and put into the program's order on
// each device, so that a row's keys are one run that ends with its position; their gradients take the way back before they are summed. The
// positions of rows follow from the device's coordinate, and with them the keys that a kernel skips (lower/attention.h). Keys that go round
// a ring stay in zigzag order, as their gradients do (ring_positions.h).
#pragma once
#include <optional>
#include <vector>

#include "compiler/context/split_attention.h"

namespace einc {

struct ZigzagGraph {
  Graph graph;
  std::vector<NodeId> at;         // per node given
  std::vector<ZigzagAxes> order;  // per node given: of what it lies in
  PartitionHints hints;           // for its partition
};

// nullopt: no attention found masks keys by their position, or the sequence has no 2n equal chunks, or other axes of the mesh split it,
// too. `go_round`: of which of `found` keys go round a ring (ring_attention.h). Theirs stay in zigzag order, and what their values per row
// and key read of indices stays as the program has it, numbers of places in its order: the ring makes it anew.
std::optional<ZigzagGraph> zigzag_attention(const Graph& graph, const std::vector<SplitAttention>& found, const std::vector<bool>& go_round,
                                            const Bindings& given);

}  // namespace einc
