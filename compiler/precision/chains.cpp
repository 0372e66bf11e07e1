// SPDX-License-Identifier: Apache-2.0
#include "compiler/precision/chains.h"

#include <algorithm>

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

// An fp8 product back in its scale is what a library stores. In f32 it would take twice the bytes of a product of bf16 operands, whose node
// is a contraction and so never widened.
bool is_scaled_product(const Graph& graph, const Node& node) {
  const Node& product = graph[node.operands[0]];
  return product.op == Op::contract && bytes_of(graph.type(product.operands[0]).dtype) == 1;
}

// A sum of products is one longer product. Over a mesh it may be added up by several devices, which then send it as they do a product.
std::vector<bool> sums_of_products(const Graph& graph) {
  std::vector<bool> sums(graph.size(), false);
  if (graph.mesh.axes.empty()) return sums;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (is_map(node, MapFn::add))
      sums[i] = std::ranges::all_of(node.operands, [&](NodeId x) { return sums[x.index]; });
    else
      sums[i] = node.op == Op::contract || (node.op == Op::map && is_scaled_product(graph, node));
  }
  return sums;
}

}  // namespace

Graph keep_chains_wide(Graph graph) {
  const std::vector<bool> seen = seen_outside(graph), products = sums_of_products(graph);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    Node& node = graph.nodes[i];
    const DType dtype = node.type.dtype;
    if (node.op != Op::map || seen[i] || node.origin.pinned || (dtype != DType::bf16 && dtype != DType::f16)) continue;
    if (products[i] || is_scaled_product(graph, node)) continue;
    node.type.dtype = DType::f32;
    node.reason = Name("inside a chain, which is rounded at its end");
  }
  return graph;
}

}  // namespace einc
