// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/like_graphs.h"

#include <algorithm>

#include "compiler/ir/attr_hash.h"

namespace einc {
namespace {

bool plan_alike(const Node& a, const Node& b) {
  if (a.op != b.op || !std::ranges::equal(a.operands, b.operands) || a.type.dtype != b.type.dtype) return false;
  if (a.origin.phase != b.origin.phase || a.origin.policy != b.origin.policy) return false;
  if (!std::ranges::equal(a.type.axes, b.type.axes, {}, &Axis::size, &Axis::size)) return false;
  return is_source(a.op) || a.attr == b.attr;
}

}  // namespace

bool plan_alike(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.nodes, b.nodes, [](const Node& x, const Node& y) { return plan_alike(x, y); }) &&
         std::ranges::equal(a.outputs, b.outputs, {}, &Output::node, &Output::node) && a.updates.empty() && b.updates.empty();
}

size_t plan_hash(const Graph& graph) {
  size_t hash = graph.nodes.size();
  for (const Node& node : graph.nodes) {
    hash = mix(hash, static_cast<size_t>(node.op));
    for (const NodeId operand : node.operands) hash = mix(hash, operand.index);
  }
  return hash;
}

}  // namespace einc
