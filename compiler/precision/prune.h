// What precision assignment leaves behind: views of the wide value that nobody reads since a cast stands below them.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

// Drops views that neither a node nor a root reads; other nodes stay.
Graph drop_unused_views(Graph graph);

}  // namespace einc
