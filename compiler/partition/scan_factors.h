// SPDX-License-Identifier: Apache-2.0
// The rule for a scan: axes of its operands and results that its iterations carry from op to op, and none of which an iteration sums over,
// looks up or needs whole, share a label. A device does its part of every iteration, and devices meet in none.
#pragma once
#include <vector>

#include "compiler/partition/factors.h"

namespace einc {

struct ScanFactors {
  Factors factors;
  std::vector<std::vector<int>> body;  // of each node's axes: labels; -1: stays whole
};

ScanFactors scan_factors(const Graph& graph, NodeId scan);

}  // namespace einc
