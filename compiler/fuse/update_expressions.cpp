// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/update_expressions.h"

#include <algorithm>

#include "compiler/ir/device_values.h"

namespace einc {
namespace {

bool passes_on(const Node& node) { return node.op == Op::map || node.op == Op::cast || kind_of(node.op) == OpKind::view; }
bool is_made_of_nothing(Op op) { return op == Op::constant || op == Op::iota || op == Op::random; }

}  // namespace

UpdateExpressions::UpdateExpressions(const BoundGraph& graph)
    : graph_(graph), readers_(graph.graph.size()), only_updated_(graph.graph.size(), false), gradient_(graph.graph.size(), false) {
  for (uint32_t i = 0; i < graph.graph.size(); ++i)
    if (graph.live[i])
      for (NodeId x : graph.graph.nodes[i].operands) readers_[x.index].push_back(NodeId{i});
  for (const Update& gradient : graph.graph.gradients)
    if (gradient.value.valid()) gradient_[gradient.value.index] = true;
  find_only_updated();
  find_numbers();
}

void UpdateExpressions::find_only_updated() {
  const Graph& graph = graph_.graph;
  std::vector<bool> other = gradient_, updated(graph.size(), false);
  for (const Output& output : graph.outputs)
    if (!is_device_value(output)) other[output.node.index] = true;  // a mesh's device has what lies outside of launches there
  if (graph.loss.valid()) other[graph.loss.index] = true;
  for (const Update& update : graph.updates) updated[update.value.index] = true;
  for (uint32_t i = graph.size(); i-- > 0;) {
    if (!graph_.live[i] || other[i] || is_source(graph.nodes[i].op)) continue;
    const bool by_others = std::ranges::any_of(readers_[i], [&](NodeId r) { return !only_updated_[r.index]; });
    only_updated_[i] = !by_others && (updated[i] || !readers_[i].empty());
  }
}

void UpdateExpressions::find_numbers() {
  number_.assign(graph_.graph.size(), false);
  for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
    const Node& node = graph_.graph.nodes[i];
    if (node.type.rank() > 0) continue;
    const bool given = node.op == Op::constant || is_source(node.op);
    number_[i] = given || (passes_on(node) && std::ranges::all_of(node.operands, [&](NodeId x) { return number_[x.index]; }));
  }
}

bool UpdateExpressions::is_leaf(NodeId id) const {
  const Node& node = graph_[id];
  if (is_made_of_nothing(node.op)) return false;
  if (!passes_on(node) || is_gradient(id)) return true;
  if (node.type.rank() == 0) return !number_[id.index];
  return node.origin.phase != Phase::optimizer && readers_[id.index].size() > 1;
}

bool UpdateExpressions::is_expression(NodeId id) const {
  const Op op = graph_[id].op;
  return (op == Op::map || op == Op::cast) && !is_leaf(id);
}

}  // namespace einc
