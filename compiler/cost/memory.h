// SPDX-License-Identifier: Apache-2.0
// What must be kept, by the contract's rules, as formulas; the plan for given dims is in plan.h. Saved activations are the
// distinct buffers of forward nodes that a backward node reads, a view counting as its base; constants (masks made from
// iota), params, their casts, and states are left out.
#pragma once
#include <vector>

#include "compiler/cost/sizes.h"

namespace einc {

// Base nodes, in order.
std::vector<NodeId> saved_activations(const Graph& graph, const std::vector<bool>& constant);

struct MemoryFormulas {
  Poly parameters, gradients, optimizer_state, state, inputs, saved_activations;
};
MemoryFormulas memory_formulas(const Graph& graph, const Sizes& sizes, const std::vector<NodeId>& saved);

// The param that a value is (a view or cast of, or a copy in fp8 divided by its scale), or invalid.
NodeId param_behind(const Graph& graph, NodeId id);

}  // namespace einc
