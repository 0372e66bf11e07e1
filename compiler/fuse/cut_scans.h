// SPDX-License-Identifier: Apache-2.0
// `save every k`: recurrences that keep the carries of every k-th iteration, and make again what the backward reads of those between.
//   before   a scan of T iterations collects v, which scans in the other direction read by slices
//   after    a scan of ceil(T/k) pieces collects the carries at the start of each; a reader of v is a scan of the same pieces, and runs the
//            first one's piece again before its own
// Iterations do what they did, in the order in which they did it: no bit changes. What others read of v (products behind the scan, which
// sum over all iterations at once) is kept as a whole, and then a reader slices it as before.
#pragma once
#include <memory>
#include <vector>

#include "compiler/lower/bound_graph.h"

namespace einc {

struct CutScans {
  std::unique_ptr<const Graph> graph;
  std::vector<NodeId> at;  // per node given: its place in `graph`; of what is made again, one that nothing reads
};

// Without a graph where nothing is cut. `roots`: values that a run must leave in memory.
CutScans cut_scans(const BoundGraph& graph, const std::vector<NodeId>& roots);

}  // namespace einc
