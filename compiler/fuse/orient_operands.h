// SPDX-License-Identifier: Apache-2.0
// fp8 products by a library need both operands' summed axes innermost in memory, but a step contracts most values along several axes:
// forward, for the gradient of what they are multiplied by, and for that of the other operand.
#pragma once
#include <memory>
#include <vector>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

struct OrientedGraph {
  std::unique_ptr<const Graph> graph;
  std::vector<NodeId> at;  // per node given: its place in `graph`
};

// The graph with a copy of each fp8 value for each further set of axes that products contract it along; without a graph when none is
// needed.
OrientedGraph orient_operands(const BoundGraph& graph, const KernelTarget& target);

}  // namespace einc
