// Drops nodes that no root needs. Inputs, params and states stay though nothing reads them, since they are part of the
// program's interface; inference drops the optimizer's states. The order of the nodes is kept.
#pragma once
#include "compiler/ir/graph.h"
#include "compiler/simplify/roots.h"

namespace einc {

Graph remove_dead(Graph graph, Roots roots);

}  // namespace einc
