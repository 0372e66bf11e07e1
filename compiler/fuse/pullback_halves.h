// SPDX-License-Identifier: Apache-2.0
// A pullback in two halves: the launches that make the program's outputs, which read no gradient of an output, and those that pull such
// gradients back. Whoever has the gradients only after the outputs runs one half before and the other behind, and nothing is made twice.
#pragma once
#include <optional>
#include <vector>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// Per node: whether it follows from gradients of outputs (elaborate/pullback). Empty where the graph has none.
std::vector<bool> find_pulled(const Graph& graph);

// How many kernels at the beginning of the list make all outputs. None: the graph is no pullback, it changes states, or a kernel makes an
// output and what is pulled back (attention of a program that itself differentiates).
std::optional<size_t> first_half(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& roots);

}  // namespace einc
