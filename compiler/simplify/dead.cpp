#include "compiler/simplify/dead.h"

#include "compiler/simplify/remap.h"

namespace einc {
namespace {

// Inference asks for no loss beside outputs, no gradients, and updates of the user's states only.
void forget_training(Graph& graph) {
  if (!graph.outputs.empty()) graph.loss = NodeId{};
  graph.gradients.clear();
  std::erase_if(graph.updates, [&](const Update& update) {
    const Node& target = graph[update.target];
    return target.op != Op::state || target.as<StateAttr>().role != StateRole::user;
  });
}

bool is_interface(const Node& node, Roots roots) {
  if (node.op == Op::state) return roots == Roots::training || node.as<StateAttr>().role == StateRole::user;
  return node.op == Op::input || node.op == Op::param;
}

}  // namespace

Graph remove_dead(Graph graph, Roots roots) {
  if (roots == Roots::inference) forget_training(graph);
  std::vector<bool> live(graph.size(), false);
  for_each_root(graph, [&](NodeId& id) { live[id.index] = true; });
  for (uint32_t i = graph.size(); i-- > 0;) {
    live[i] = live[i] || is_interface(graph.nodes[i], roots);
    if (live[i])
      for (NodeId operand : graph.nodes[i].operands) live[operand.index] = true;
  }
  std::vector<NodeId> to(graph.size());
  uint32_t kept = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (!live[i]) continue;
    Node& node = graph.nodes[i];
    for (NodeId& operand : node.operands) operand = to[operand.index];
    to[i] = NodeId{kept};
    if (i != kept) graph.nodes[kept] = std::move(node);
    ++kept;
  }
  graph.nodes.erase(graph.nodes.begin() + kept, graph.nodes.end());
  for_each_root(graph, [&](NodeId& id) { id = to[id.index]; });
  return graph;
}

}  // namespace einc
