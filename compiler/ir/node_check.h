// SPDX-License-Identifier: Apache-2.0
// One node against the rules of its op (see graph.h): operand count, attribute kind, positions in range, sizes and dtypes.
#pragma once
#include <string>

#include "compiler/ir/graph.h"

namespace einc {

// What is wrong with the node, or nothing. Safe on any graph, however malformed.
std::string check_node(const Graph& graph, NodeId id);

}  // namespace einc
