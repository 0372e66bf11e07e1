// SPDX-License-Identifier: Apache-2.0
// Products of fp8 values that the program widens first, of which every product is exact in f32: a library multiplies them as they are, and
// rounds its sums to what they are cast to.
#pragma once
#include <memory>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_target.h"

namespace einc {

// The graph with such contractions reading the values before they are widened; nodes keep their numbers. Nothing where there are none for
// a library. `roots`: nodes whose values must be in memory at the end.
std::unique_ptr<const Graph> narrow_products(const BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target);

}  // namespace einc
