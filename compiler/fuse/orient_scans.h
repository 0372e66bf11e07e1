// SPDX-License-Identifier: Apache-2.0
// Right factors of a recurrence's products, as loops read them. A product's vectors run along the last axis of its result. Where a value
// that all iterations read whole lies the other way (the weights in a backward), each iteration would copy it into panels; it is turned
// once instead, before the scan.
#pragma once
#include <memory>
#include <vector>

#include "compiler/lower/bound_graph.h"

namespace einc {

struct OrientedScans {
  std::unique_ptr<const Graph> graph;
  std::vector<NodeId> at;  // per node given: its place in `graph`
};

// Without a graph where nothing is turned.
OrientedScans orient_scans(const BoundGraph& graph);

}  // namespace einc
