// SPDX-License-Identifier: Apache-2.0
// Random numbers of a device of a mesh. All devices together draw what one would draw without a mesh, and each takes its part by its
// coordinates: a number follows from its index alone, so a device makes no more than it takes.
#pragma once
#include <vector>

#include "compiler/lower/bound_graph.h"

namespace einc {

// Whether a node is the part at a single number of what is drawn, below views and other such parts.
bool is_drawn_part(const BoundGraph& graph, NodeId id);

// Per node: draws, and parts of them, that nothing reads but such parts do. `is_root`: per node, what must be in memory.
std::vector<bool> find_taken_in_parts(const BoundGraph& graph, const std::vector<bool>& is_root);

}  // namespace einc
