// SPDX-License-Identifier: Apache-2.0
// From a group of graph nodes to a kernel. The values that the group stores are evaluated at the points of one space, the
// axes of its largest node; operands are pulled in at the index at which they are read, through views, so that a view costs
// nothing and an intermediate that nobody else needs is never stored. An index that a merge or split takes apart splits the
// loop axis instead. Sums and products over axes become stages; whether the group can be one kernel is found by building it.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

struct BuiltKernel {
  Kernel kernel;
  // Runs after it, with the same buffers: adds up what its parts have left in those of no node, and stores what is made of that.
  std::optional<Kernel> column_sums;
  std::vector<NodeId> buffers, streams, sites;  // as in GraphKernel
};

struct BuildResult {
  std::optional<BuiltKernel> built;
  std::string refusal;  // why the group is not one kernel
};

// `in_memory`: nodes outside the group whose value lies in a buffer (inputs, params, states do anyway). Others are recomputed here.
// Where one reduction goes over rows and others sum over all of them, those are left to `column_sums`.
BuildResult build_kernel(const BoundGraph& graph, const Group& group, const std::vector<bool>& in_memory);

}  // namespace einc
