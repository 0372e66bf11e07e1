// SPDX-License-Identifier: Apache-2.0
// Long orders as merge sorts. A kernel finds the k-th element of an order after the one before it, k passes over the line. Where that is
// dear, lines are sorted by merging instead: runs of 1, 2, 4, ... elements pairwise, each element of the result finding its source on its
// own by a binary search (merge path, Odeh et al. 2012), so that all elements of a pass are made at once. Ties keep their order. The graph
// that costs are told of has the plain form.
#pragma once
#include <memory>
#include <vector>

#include "compiler/lower/bound_graph.h"

namespace einc {

struct MergedSorts {
  std::unique_ptr<const Graph> graph;
  std::vector<NodeId> at;  // per node given: its place in `graph`
};

// Without a graph where no order is long.
MergedSorts merge_sorts(const BoundGraph& graph);

}  // namespace einc
