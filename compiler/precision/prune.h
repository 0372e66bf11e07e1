// SPDX-License-Identifier: Apache-2.0
// What precision assignment leaves behind: views of the wide value that nobody reads since a cast stands below them, and casts that
// became none.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

// Drops views and casts that neither a node nor a root reads; other nodes stay.
Graph drop_unused_views_and_casts(Graph graph);

}  // namespace einc
