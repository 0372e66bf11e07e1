// SPDX-License-Identifier: Apache-2.0
// A step within a number of bytes: values that the forward saves for the backward are made again there instead, those first that add the
// least time for their bytes. What is chosen is checked against the plan of buffers, not against a sum of sizes.
// A choice after which some sum of the step runs over other loops is none (kept_sums), so that all values keep their bits. What a choice
// means for the graph: remade_values.
// Classes of values alike (of equal layers) are taken whole, the cheapest set of them that fits, or where none of the sets tried does the
// cheapest class for its bytes first; then as few of each as are enough. Once more with one class of layers' inputs saved as well, as
// checkpoints (Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost); where no choice fits, with all that iterations hand on.
#pragma once
#include <cstdint>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

struct Forming;

// What a step under a limit makes again.
struct Recomputation {
  std::vector<NodeId> values;  // of the graph given
  double cost = 0;             // FLOPs that it adds, with those that take as long as the bytes it moves
};

// Values of one kind are alike, but for their sizes: of equal layers, and of the graphs of a program's devices.
std::string value_kind(const Node& node);

// Throws RuntimeFailure (resource) with the least that can be reached where that is more than the limit.
void recompute_within_limit(Forming& forming);

}  // namespace einc
