// SPDX-License-Identifier: Apache-2.0
// Drops nodes that no root needs. Inputs, params and the user's states stay though nothing reads them, since they are part of
// the program's interface; an optimizer's state goes with its update when nothing but that update reads it (amsgrad's while it
// is off), and always at inference. The order of the nodes is kept.
#pragma once
#include "compiler/ir/graph.h"
#include "compiler/simplify/roots.h"

namespace einc {

Graph remove_dead(Graph graph, Roots roots);

}  // namespace einc
