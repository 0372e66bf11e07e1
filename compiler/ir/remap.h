// SPDX-License-Identifier: Apache-2.0
// The places outside the node list that name nodes: visited when a pass marks what is needed or renumbers.
#pragma once
#include "compiler/ir/graph.h"

namespace einc {

template <class Visit>
void for_each_root(Graph& graph, Visit visit) {
  for (Output& output : graph.outputs) visit(output.node);
  for (Update& update : graph.updates) {
    visit(update.target);
    visit(update.value);
  }
  for (Update& gradient : graph.gradients) {
    visit(gradient.target);
    visit(gradient.value);
  }
  if (graph.loss.valid()) visit(graph.loss);
}

}  // namespace einc
