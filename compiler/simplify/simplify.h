// SPDX-License-Identifier: Apache-2.0
// The simplifier: what stands between a differentiated graph and everything that reads graphs (precision, cost, kernels).
// A short list of passes, each a function Graph -> Graph in its own file: composites are expanded, unused nodes dropped, then
// rewrite rules and the merging of equal nodes run until neither finds anything. Every pass is linear in the graph. The
// result computes the same outputs, updates, loss and gradients; node ids are new.
#pragma once
#include "compiler/ir/graph.h"
#include "compiler/simplify/roots.h"

namespace einc {

Graph simplify(Graph graph, Roots roots);

}  // namespace einc
