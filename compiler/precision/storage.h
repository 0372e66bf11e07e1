// SPDX-License-Identifier: Apache-2.0
// Params and states of a program without a loss. Masters in f32 serve small updates; where nothing updates a param and all
// readers take it in fewer bits, it is stored in those, and a state that is given and read in fewer bits likewise.
#pragma once
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// `free_to_choose` has the params and states without a dtype in the program. No number changes but their own.
Graph store_as_read(Graph graph, const std::vector<NodeId>& free_to_choose);

}  // namespace einc
