// SPDX-License-Identifier: Apache-2.0
// Counts on a graph for tests, by the counting rules' own words and sharing nothing with the compiler's cost tables.
#pragma once
#include <map>

#include "compiler/ir/graph.h"

namespace einc::test {

struct FlopCounts {
  Poly contraction, elementwise, reduction, other;
};

inline FlopCounts count_flops(const Graph& graph, Phase phase) {
  const std::vector<bool> constant = constant_nodes(graph);
  FlopCounts total;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    if (constant[i] || node.origin.phase != phase) continue;
    if (node.op == Op::map) total.elementwise += node.type.count();
    if (node.op == Op::reduce || node.op == Op::cumulate) total.reduction += graph.type(node.operands[0]).count();
    if (makes_table(node.op) || node.op == Op::fold) total.other += graph.type(node.operands[0]).count();
    if (node.op != Op::contract) continue;
    const ContractAttr& attr = node.as<ContractAttr>();
    Poly product(2);
    for (int k = 0; k < attr.left.size(); ++k) product *= graph.type(node.operands[0]).axis(k).size;
    for (int k = 0; k < attr.right.size(); ++k)
      if (!attr.left.contains(attr.right[k])) product *= graph.type(node.operands[1]).axis(k).size;
    total.contraction += product;
  }
  return total;
}

inline int count_ops(const Graph& graph, Op op) {
  int count = 0;
  for (const Node& node : graph.nodes) count += node.op == op;
  return count;
}
inline int count_maps(const Graph& graph, MapFn fn) {
  int count = 0;
  for (const Node& node : graph.nodes) count += node.op == Op::map && node.as<MapAttr>().fn == fn;
  return count;
}

// A type from dims named like their axes: tensor({"batch", "embed"}).
inline Type tensor(std::initializer_list<const char*> names, DType dtype = DType::real) {
  Type type{dtype, {}};
  for (const char* name : names) type.axes.push_back({name, Poly::dim(name)});
  return type;
}

}  // namespace einc::test
