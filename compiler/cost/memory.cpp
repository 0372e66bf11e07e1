// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/memory.h"

#include "compiler/cost/layout.h"
#include "compiler/cost/sum.h"

namespace einc {

namespace {

bool is_copy(const Graph& graph, const Node& node) {
  if (node.op == Op::cast) return true;
  const bool fp8 = node.type.dtype == DType::f8e4m3 || node.type.dtype == DType::f8e5m2;
  return fp8 && is_map(node, MapFn::div) && graph.type(node.operands[1]).rank() == 0;
}

}  // namespace

NodeId param_behind(const Graph& graph, NodeId id) {
  for (;;) {
    id = view_base(graph, id);
    if (!is_copy(graph, graph[id])) break;
    id = graph[id].operands[0];
  }
  return graph[id].op == Op::param ? id : NodeId{};
}

std::vector<NodeId> saved_activations(const Graph& graph, const std::vector<bool>& constant) {
  std::vector<bool> saved(graph.size(), false);
  for (const Node& node : graph.nodes) {
    if (node.origin.phase != Phase::backward || kind_of(node.op) == OpKind::view) continue;
    for (NodeId operand : node.operands) {
      const NodeId base = view_base(graph, operand);
      const Node& source = graph[base];
      if (source.origin.phase != Phase::forward || constant[base.index] || source.op == Op::state) continue;
      if (!param_behind(graph, base).valid()) saved[base.index] = true;
    }
  }
  std::vector<NodeId> result;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (saved[i]) result.push_back(NodeId{i});
  return result;
}

MemoryFormulas memory_formulas(const Graph& graph, const Sizes& sizes, const std::vector<NodeId>& saved) {
  enum Channel { parameters, gradients, optimizer_state, state, inputs, activations, channels };
  LoopSum sum(graph, channels);
  auto add = [&](Channel channel, NodeId id) { sum.add(channel, graph[id].origin.loop_context, sizes.bytes(id)); };
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (node.op == Op::param) add(parameters, NodeId{i});
    if (node.op == Op::input) add(inputs, NodeId{i});
    if (node.op == Op::state) add(node.as<StateAttr>().role == StateRole::user ? state : optimizer_state, NodeId{i});
  }
  for (const Update& gradient : graph.gradients) add(gradients, gradient.target);
  for (NodeId id : saved) add(activations, id);
  const std::vector<Poly> t = sum.totals();
  return {t[parameters], t[gradients], t[optimizer_state], t[state], t[inputs], t[activations]};
}

}  // namespace einc
