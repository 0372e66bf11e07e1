// SPDX-License-Identifier: Apache-2.0
#include "compiler/simplify/dead.h"

#include <unordered_map>

#include "compiler/ir/remap.h"
#include "compiler/ir/scan.h"
#include "runtime/base/training_names.h"

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

// What minimizes nothing has its outputs alone.
void forget_outputs(Graph& graph) {
  if (graph.loss.valid())
    std::erase_if(graph.outputs, [](const Output& output) { return !output.name.str().starts_with(kAddedByTraining); });
}

bool is_optimizer_state(const Node& node) { return node.op == Op::state && node.as<StateAttr>().role != StateRole::user; }
bool is_interface(const Node& node) {
  return node.op == Op::input || node.op == Op::param || (node.op == Op::state && !is_optimizer_state(node));
}

void forget_all_but_loss(Graph& graph) {
  graph.outputs.clear();
  graph.gradients.clear();
  graph.updates.clear();
}

// The step reads a sum of gradients; micro-batches, which are a graph of their own, only add to it.
bool is_gradient_sum(const Graph& graph, const Update& update) {
  return is_optimizer_state(graph[update.target]) && graph[update.value].origin.phase == Phase::backward;
}

// What a root is reached from. The update of an optimizer's state counts once something else reads that state.
class Reach {
 public:
  explicit Reach(const Graph& graph) : graph_(graph), live_(graph.size(), false) {
    for (const Update& update : graph.updates) {
      if (is_optimizer_state(graph[update.target]) && !is_gradient_sum(graph, update))
        values_.emplace(update.target.index, update.value);
      else
        take(update.target), take(update.value);
    }
    for (const Output& output : graph.outputs) take(output.node);
    for (const Update& gradient : graph.gradients) take(gradient.target), take(gradient.value);
    if (graph.loss.valid()) take(graph.loss);
    for (uint32_t i = 0; i < graph.size(); ++i)
      if (is_interface(graph.nodes[i])) take(NodeId{i});
    while (!open_.empty()) {
      const NodeId id = open_.back();
      open_.pop_back();
      for (NodeId operand : graph_[id].operands) take(operand);
      if (const auto value = values_.find(id.index); value != values_.end()) take(value->second);
    }
  }
  bool operator[](NodeId id) const { return live_[id.index]; }

 private:
  void take(NodeId id) {
    if (live_[id.index]) return;
    live_[id.index] = true;
    open_.push_back(id);
  }

  const Graph& graph_;
  std::vector<bool> live_;
  std::vector<NodeId> open_;
  std::unordered_map<uint32_t, NodeId> values_;  // of optimizer states
};

// An update in `if training` gives the state itself where that is false.
void forget_unchanged(Graph& graph) {
  std::erase_if(graph.updates, [&](const Update& update) {
    const Node& target = graph[update.target];
    // What a scan's iterations hand on has its number among the updates.
    return update.target == update.value && target.op == Op::state && !is_optimizer_state(target) && !is_scan_source(target);
  });
}

}  // namespace

Graph remove_dead(Graph graph, Roots roots) {
  if (roots == Roots::step) forget_outputs(graph);
  if (roots == Roots::inference) forget_training(graph);
  if (roots == Roots::evaluation) forget_all_but_loss(graph);
  forget_unchanged(graph);
  const Reach live(graph);
  std::erase_if(graph.updates, [&](const Update& update) { return !live[update.target]; });
  std::vector<NodeId> to(graph.size());
  uint32_t kept = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (!live[NodeId{i}]) continue;
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
