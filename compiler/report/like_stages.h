// SPDX-License-Identifier: Apache-2.0
// Graphs of stages that are planned alike: equal but for the names of what is given to them and where they stand in the source. Layers have
// such stages.
#pragma once
#include <cstddef>

#include "compiler/ir/graph.h"

namespace einc {

bool plan_alike(const Graph& a, const Graph& b);
// Equal for graphs that plan alike.
size_t plan_hash(const Graph& graph);

}  // namespace einc
