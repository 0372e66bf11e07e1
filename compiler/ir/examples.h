// SPDX-License-Identifier: Apache-2.0
// How many examples a step takes.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

// The size of the first axis that all inputs share by name, or 1; of a program without inputs, that all draws share, dropout's masks apart.
Poly examples_per_step(const Graph& graph);

// The dim whose value that is; empty where it is a formula or a number.
Name examples_dim(const Graph& graph);

}  // namespace einc
