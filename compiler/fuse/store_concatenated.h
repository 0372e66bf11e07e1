// SPDX-License-Identifier: Apache-2.0
// What is only put side by side afterwards is stored there by the attention kernels that make it: no kernel copies it.
#pragma once
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// `kept`: values that must lie in buffers of their own.
void store_concatenated(const BoundGraph& graph, const std::vector<NodeId>& kept, KernelList& list);

}  // namespace einc
