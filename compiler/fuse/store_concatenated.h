// SPDX-License-Identifier: Apache-2.0
// What is only put side by side afterwards is stored there by the kernels that make it, of attention or of products: no kernel copies it.
#pragma once
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

enum class ConcatenatedBy : uint8_t { attention, products };

// `kept`: values that must lie in buffers of their own.
void store_concatenated(const BoundGraph& graph, const std::vector<NodeId>& kept, ConcatenatedBy by, KernelList& list);

}  // namespace einc
