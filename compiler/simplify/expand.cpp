// SPDX-License-Identifier: Apache-2.0
#include "compiler/simplify/expand.h"

#include <cmath>

#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"
#include "compiler/scan/each_body.h"

namespace einc {
namespace {

bool has_composite(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (kind_of(node.op) == OpKind::composite) return true;
  return false;
}

// x with y subtracted (or x divided by y), where y lacks the reduced axes.
NodeId beside_reduced(Builder& build, MapFn fn, NodeId x, NodeId y, const AxisList& reduced) {
  const Type type = build.type(x);
  const NodeId operands[] = {x, y};
  const AxisList maps[] = {AxisList::range(type.rank()), AxisList::all_but(type.rank(), reduced)};
  return build.map(fn, operands, maps, type.axes, type.dtype);
}

struct Shifted {
  NodeId max, exp, sum;
};
Shifted shifted_exponentials(Builder& build, NodeId x, const AxisList& axes) {
  const NodeId max = build.reduce(ReduceFn::max, x, axes);
  const NodeId exp = build.map(MapFn::exp, {beside_reduced(build, MapFn::sub, x, max, axes)});
  return {max, exp, build.reduce(ReduceFn::sum, exp, axes)};
}

NodeId expand_softmax(Builder& build, const Node& node, NodeId x) {
  const AxisList& axes = node.as<ReduceAttr>().axes;
  const Shifted s = shifted_exponentials(build, x, axes);
  return beside_reduced(build, MapFn::div, s.exp, s.sum, axes);
}

// One infinity everywhere, as `full(c, -inf)`: constants are folded by their formulas, and inf - inf would make a NaN of it.
bool is_infinite(const Graph& graph, NodeId x) {
  const Node& node = graph[x];
  if (kind_of(node.op) == OpKind::view || node.op == Op::cast) return is_infinite(graph, node.operands[0]);
  const auto* constant = std::get_if<ConstantAttr>(&node.attr);
  const double* value = constant != nullptr ? std::get_if<double>(&constant->value) : nullptr;
  return value != nullptr && std::isinf(*value);
}

NodeId expand_logsumexp(Builder& build, const Node& node, NodeId x) {
  if (is_infinite(build.graph(), x)) return build.reduce(ReduceFn::max, x, node.as<ReduceAttr>().axes);
  const Shifted s = shifted_exponentials(build, x, node.as<ReduceAttr>().axes);
  return build.map(MapFn::add, {build.map(MapFn::log, {s.sum}), s.max});
}

NodeId expand_dropout(Builder& build, const Node& node, NodeId x, Roots roots) {
  const DropoutAttr& attr = node.as<DropoutAttr>();
  if (!trains(roots) || attr.p == 0) return x;
  const DType dtype = node.type.dtype;
  const double keep = 1 - attr.p;
  const NodeId mask = build.random(RandomAttr{RandomKind::keep_mask, attr.stream, keep}, Type{DType::u8, node.type.axes});
  const NodeId scaled = build.map(MapFn::mul, {x, build.constant(1 / keep, dtype)});
  return build.map(MapFn::where, {build.cast(mask, DType::boolean), scaled, build.constant(Poly(0), dtype)});
}

NodeId expand_node(Builder& build, const Node& node, Roots roots) {
  if (node.op == Op::training) return build.constant(Poly(trains(roots) ? 1 : 0), DType::boolean);
  const NodeId x = node.operands[0];
  const Name label = build.origin.label;
  build.origin.label = Name();  // the steps are not the value that the source names
  NodeId result;
  if (node.op == Op::softmax)
    result = expand_softmax(build, node, x);
  else if (node.op == Op::logsumexp)
    result = expand_logsumexp(build, node, x);
  else
    result = expand_dropout(build, node, x, roots);
  if (result == x) return x;
  Node& last = build.graph()[result];
  last.origin.label = label;
  last.origin.pinned = node.origin.pinned;
  last.type = node.type;  // the axes' names as the composite had them
  return result;
}

}  // namespace

Graph expand(Graph graph, Roots roots) {
  for_each_body(graph, [&](Graph body) { return expand(std::move(body), roots); });
  if (!has_composite(graph)) return graph;
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  graph.nodes.reserve(nodes.size() + nodes.size() / 8);
  Builder build(graph);
  std::vector<NodeId> to(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    Node& node = nodes[i];
    for (NodeId& operand : node.operands) operand = to[operand.index];
    if (kind_of(node.op) == OpKind::composite) {
      build.origin = node.origin;
      build.origin.pinned = false;
      to[i] = expand_node(build, node, roots);
    } else {
      to[i] = build.append(std::move(node));
    }
  }
  for_each_root(graph, [&](NodeId& id) { id = to[id.index]; });
  return graph;
}

}  // namespace einc
