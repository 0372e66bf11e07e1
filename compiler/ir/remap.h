// SPDX-License-Identifier: Apache-2.0
// The places outside the node list that name nodes: visited when a pass marks what is needed or renumbers.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

// AnyGraph: Graph or const Graph.
template <class AnyGraph, class Visit>
void for_each_root(AnyGraph& graph, Visit visit) {
  for (auto& output : graph.outputs) visit(output.node);
  for (auto& update : graph.updates) {
    visit(update.target);
    visit(update.value);
  }
  for (auto& gradient : graph.gradients) {
    visit(gradient.target);
    visit(gradient.value);
  }
  if (graph.loss.valid()) visit(graph.loss);
}

}  // namespace einc
