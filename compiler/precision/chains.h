// SPDX-License-Identifier: Apache-2.0
// Chains of elementwise nodes: what only further elementwise nodes of its phase read never reaches memory once kernels are formed, so
// rounding it would cost time and accuracy and save nothing.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

// Gives such values of 16 bits f32, so that a chain is rounded at its end alone. Pinned nodes and roots keep their dtype.
Graph keep_chains_wide(Graph graph);

}  // namespace einc
