// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/ir/graph.h"

namespace einc {

bool is_in_tf32(const Graph& graph, NodeId contraction) {
  const Origin& origin = graph[contraction].origin;
  if (origin.phase == Phase::optimizer) return false;
  return (origin.policy == Policy::inherit ? graph.policy : origin.policy) == Policy::tf32;
}

Graph without_nodes(const Graph& graph) {
  Graph out;
  static_cast<GraphFrame&>(out) = graph;
  out.nodes.reserve(graph.nodes.size() + graph.nodes.size() / 8);
  return out;
}

std::vector<bool> constant_nodes(const Graph& graph) {
  std::vector<bool> constant(graph.size(), false);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    switch (node.op) {
      case Op::input:
      case Op::param:
      case Op::state:
      case Op::random:
      case Op::dropout:
      case Op::scan:  // iterations may draw
        continue;
      case Op::constant:
      case Op::iota:
      case Op::training:
        constant[i] = true;
        continue;
      case Op::map:
      case Op::reduce:
      case Op::cumulate:
      case Op::arg_reduce:
      case Op::top_k_index:
      case Op::contract:
      case Op::permute:
      case Op::broadcast:
      case Op::split:
      case Op::merge:
      case Op::slice:
      case Op::diagonal:
      case Op::window:
      case Op::fold:
      case Op::pad:
      case Op::concat:
      case Op::gather:
      case Op::scatter_add:
      case Op::scatter_max:
      case Op::scatter_min:
      case Op::scatter_set:
      case Op::cast:
      case Op::stop_gradient:
      case Op::scan_result:
      case Op::all_reduce:
      case Op::reduce_scatter:
      case Op::all_gather:
      case Op::all_to_all:
      case Op::shift:
      case Op::softmax:
      case Op::logsumexp:
        break;
    }
    bool all = true;
    for (NodeId operand : node.operands) all = all && constant[operand.index];
    constant[i] = all;
  }
  return constant;
}

bool has_state(const Graph& graph, std::string_view path) {
  return std::ranges::any_of(graph.nodes,
                             [&](const Node& node) { return node.op == Op::state && node.as<StateAttr>().path.str() == path; });
}

}  // namespace einc
