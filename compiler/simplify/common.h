// SPDX-License-Identifier: Apache-2.0
// Merges equal pure nodes: same op, attributes, operands, sizes, dtype and policy (axis names do not matter). The first one
// in the graph stays and takes the earliest phase among the equals. Operands of commutative functions and of contractions
// are put in a canonical order first, so that a + b meets b + a. Inputs, params and states are never merged.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

struct Merged {
  Graph graph;
  size_t count = 0;  // nodes that nothing uses any more; they stay in the list for remove_dead
};
Merged merge_common(Graph graph);

}  // namespace einc
