// SPDX-License-Identifier: Apache-2.0
#include "compiler/precision/chains.h"

#include "runtime/base/dtype.h"

namespace einc {
namespace {

// Nodes that something else than a map of their own phase reads, or a root is.
std::vector<bool> seen_outside(const Graph& graph) {
  std::vector<bool> seen(graph.size(), false);
  for (const Node& node : graph.nodes)
    for (NodeId x : node.operands)
      if (node.op != Op::map || node.origin.phase != graph[x].origin.phase) seen[x.index] = true;
  const auto root = [&](NodeId id) {
    if (id.valid()) seen[id.index] = true;
  };
  for (const Output& output : graph.outputs) root(output.node);
  root(graph.loss);
  for (const auto* list : {&graph.updates, &graph.gradients})
    for (const Update& update : *list) root(update.value);
  return seen;
}

// An fp8 product back in its scale is what lies in memory of it, as a bf16 product is that follows no chain either.
bool is_scaled_product(const Graph& graph, const Node& node) {
  const Node& product = graph[node.operands[0]];
  return product.op == Op::contract && bytes_of(graph.type(product.operands[0]).dtype) == 1;
}

}  // namespace

Graph keep_chains_wide(Graph graph) {
  const std::vector<bool> seen = seen_outside(graph);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    Node& node = graph.nodes[i];
    const DType dtype = node.type.dtype;
    if (node.op != Op::map || seen[i] || node.origin.pinned || (dtype != DType::bf16 && dtype != DType::f16)) continue;
    if (is_scaled_product(graph, node)) continue;
    node.type.dtype = DType::f32;
    node.reason = Name("inside a chain, which is rounded at its end");
  }
  return graph;
}

}  // namespace einc
