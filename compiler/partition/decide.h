// SPDX-License-Identifier: Apache-2.0
// One step of propagation: from the layouts of a node's operands to those that it is computed from and the one it gets. A mesh axis splits
// one label of the op at most. Where operands disagree, those are laid out anew whose bytes cost least; ties go to the first label.
#pragma once
#include <span>
#include <vector>

#include "compiler/partition/factors.h"
#include "compiler/partition/layout.h"

namespace einc {

struct LayoutDecision {
  std::vector<Layout> operands;
  Layout result;
  AxisList rows;               // mesh axes that split the indexed axis of a gather's or scatter's table
  AxisList passed;             // mesh axes along which operands' sums stay to be taken
  std::vector<AxisList> over;  // by label of the factors
};

// `want`: the layout that the node's users would like, of its rank; it decides what is free to choose.
LayoutDecision decide_layouts(const Graph& graph, NodeId id, const Factors& factors, std::span<const Layout> given, const Layout& want,
                              const LayoutValues& values);

// How a scan's result lies. `over`: as decided for the scan.
Layout scan_result_layout(const Factors& of_scan, std::span<const AxisList> over, int result);

// Whether the mesh's parts of an axis have one size at these values. A dim without a value divides.
bool divides_evenly(const Poly& size, const AxisList& over, const Mesh& mesh, const LayoutValues& values);

}  // namespace einc
