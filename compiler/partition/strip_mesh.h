// SPDX-License-Identifier: Apache-2.0
// A node's attributes without the axes of the mesh: the way back from what MeshBuilder puts in front.
#pragma once
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// `node` is a copy of `source`, a node of a partitioned graph, with its type on one device. `from`, by operand, and `to`: where each axis
// of the partitioned node stands on the device; -1: it is the mesh's.
void strip_mesh(Node& node, const Node& source, const std::vector<std::vector<int>>& from, const std::vector<int>& to);

}  // namespace einc
