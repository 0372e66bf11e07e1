// SPDX-License-Identifier: Apache-2.0
// Drops what a scan does for nothing: results that nobody reads, with the carries that only they need, and operands that the body does not
// read.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

struct Pruned {
  Graph graph;
  size_t count = 0;  // operands and results dropped
};
Pruned prune_scans(Graph graph);

}  // namespace einc
