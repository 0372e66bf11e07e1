// SPDX-License-Identifier: Apache-2.0
// Graphs that are planned alike: equal but for the names of what is given to them and where they stand in the source. Ways to split a
// program that differ in the names of mesh axes have such graphs of a device.
#pragma once
#include <cstddef>

#include "compiler/ir/graph.h"

namespace einc {

bool plan_alike(const Graph& a, const Graph& b);
// Equal for graphs that plan alike.
size_t plan_hash(const Graph& graph);

}  // namespace einc
