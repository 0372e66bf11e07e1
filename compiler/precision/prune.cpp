// SPDX-License-Identifier: Apache-2.0
#include "compiler/precision/prune.h"

namespace einc {

Graph drop_unused_views_and_casts(Graph graph) {
  std::vector<bool> used(graph.size(), false);
  auto mark = [&](NodeId id) {
    if (id.valid()) used[id.index] = true;
  };
  for (const Output& output : graph.outputs) mark(output.node);
  mark(graph.loss);
  for (const auto* list : {&graph.updates, &graph.gradients})
    for (const Update& update : *list) {
      mark(update.target);
      mark(update.value);
    }
  for (uint32_t i = graph.size(); i-- > 0;) {
    if (kind_of(graph.nodes[i].op) != OpKind::view && graph.nodes[i].op != Op::cast) used[i] = true;
    if (used[i])
      for (NodeId x : graph.nodes[i].operands) used[x.index] = true;
  }
  std::vector<NodeId> to(graph.size());
  std::vector<Node> kept;
  kept.reserve(graph.nodes.size());
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (!used[i]) continue;
    to[i] = NodeId{static_cast<uint32_t>(kept.size())};
    kept.push_back(std::move(graph.nodes[i]));
    for (NodeId& x : kept.back().operands) x = to[x.index];
  }
  graph.nodes = std::move(kept);
  auto move = [&](NodeId& id) {
    if (id.valid()) id = to[id.index];
  };
  for (Output& output : graph.outputs) move(output.node);
  move(graph.loss);
  for (auto* list : {&graph.updates, &graph.gradients})
    for (Update& update : *list) {
      move(update.target);
      move(update.value);
    }
  return graph;
}

}  // namespace einc
