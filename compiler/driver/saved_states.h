// SPDX-License-Identifier: Apache-2.0
// The states that belong to a model's weights: running statistics, but not caches.
#pragma once
#include <functional>
#include <string>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// Paths of the user's states that an output or the loss reads and none of whose axes is an axis of an input. `graph`: as elaborated, or
// with its outputs.
std::vector<std::string> states_saved_with_weights(const Graph& graph);

// Says on standard error which of these states weights do not hold: they keep their initial values.
void note_missing_states(const Graph& graph, const std::function<bool(const std::string& state)>& is_held);

}  // namespace einc
