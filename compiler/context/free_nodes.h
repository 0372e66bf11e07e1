// SPDX-License-Identifier: Apache-2.0
#pragma once
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// By node: whether it is made of constants and indices alone.
std::vector<bool> free_nodes(const Graph& graph);

}  // namespace einc
