// SPDX-License-Identifier: Apache-2.0
// Rewrite rules of reductions and contractions. A contraction keeps the product of its axes, which is what it is counted
// by: permutes are read through, a broadcast only where the other operand has the same axis too.
#include <algorithm>

#include "compiler/simplify/rewrite.h"

namespace einc {
namespace {

bool is_idempotent(ReduceFn fn) { return fn != ReduceFn::sum && fn != ReduceFn::prod; }

std::optional<NodeId> reduce_nothing(Rewriter& r, const Node& node) {
  const bool nothing = node.as<ReduceAttr>().axes.empty() && r.type(node.operands[0]).dtype == node.type.dtype;
  return nothing ? std::optional(node.operands[0]) : std::nullopt;
}

// Axes of size 1 are dropped by a view.
std::optional<NodeId> reduce_unit(Rewriter& r, const Node& node) {
  const ReduceAttr& attr = node.as<ReduceAttr>();
  const Type type = r.type(node.operands[0]);
  const auto unit = [&](int axis) { return type.axis(axis).size.is_one(); };
  if (type.dtype != node.type.dtype || std::none_of(attr.axes.begin(), attr.axes.end(), unit)) return std::nullopt;
  AxisList counts, left;
  std::vector<Axis> axes;
  for (int i = 0; i < type.rank(); ++i) {
    const bool drop = attr.axes.contains(i) && unit(i);
    counts.push_back(drop ? 0 : 1);
    if (!drop && attr.axes.contains(i)) left.push_back(static_cast<int>(axes.size()));
    if (!drop) axes.push_back(type.axis(i));
  }
  const NodeId x = r.settle(r.build.split(node.operands[0], counts, axes));
  return r.settle(r.build.reduce(attr.fn, x, left));
}

// Along an axis that a broadcast made, a sum multiplies by the size, and max, min, any, all do nothing.
std::optional<NodeId> reduce_broadcast(Rewriter& r, const Node& node) {
  const ReduceAttr& attr = node.as<ReduceAttr>();
  const Node view = r.at(node.operands[0]);
  if (view.op != Op::broadcast || view.origin.pinned || attr.fn == ReduceFn::prod) return std::nullopt;
  const AxisList& map = view.as<BroadcastAttr>().map;
  if (view.type.dtype != node.type.dtype || std::all_of(attr.axes.begin(), attr.axes.end(), [&](int a) { return map.contains(a); }))
    return std::nullopt;
  AxisList axes, kept_map;
  Poly copies(1);
  for (int i = 0; i < map.size(); ++i)
    if (attr.axes.contains(map[i])) axes.push_back(i);
  for (int i = 0, at = 0; i < view.type.rank(); ++i) {
    if (attr.axes.contains(i)) {
      if (!map.contains(i)) copies *= view.type.axis(i).size;
      continue;
    }
    if (map.contains(i)) kept_map.push_back(at);
    ++at;
  }
  NodeId x = view.operands[0];
  if (!axes.empty()) x = r.settle(r.build.reduce(attr.fn, x, axes));
  if (!is_idempotent(attr.fn) && !copies.is_one()) x = r.map(MapFn::mul, {x, r.settle(r.build.constant(copies, node.type.dtype))});
  return r.place(x, kept_map, node.type);
}

// A permute of reduced axes does not matter as long as the kept ones stay in order.
std::optional<NodeId> reduce_permute(Rewriter& r, const Node& node) {
  const ReduceAttr attr = node.as<ReduceAttr>();
  const Node view = r.at(node.operands[0]);
  if (view.op != Op::permute || view.origin.pinned) return std::nullopt;
  const AxisList& order = view.as<PermuteAttr>().order;
  AxisList kept, axes;
  for (int i = 0; i < order.size(); ++i) (attr.axes.contains(i) ? axes : kept).push_back(order[i]);
  if (!std::is_sorted(kept.begin(), kept.end())) return std::nullopt;
  return r.settle(r.build.reduce(attr.fn, view.operands[0], axes));
}

// Labels of a view's operand, given those of the view; nullopt when it cannot be read through.
std::optional<AxisList> labels_through(const Node& view, const AxisList& labels, const AxisList& other, int out_rank) {
  if (view.origin.pinned) return std::nullopt;
  AxisList result;
  if (view.op == Op::permute) {
    const AxisList& order = view.as<PermuteAttr>().order;
    for (int i = 0; i < order.size(); ++i) result.push_back(labels[order.find(i)]);
    return result;
  }
  if (view.op != Op::broadcast) return std::nullopt;
  const AxisList& map = view.as<BroadcastAttr>().map;
  for (int i = 0; i < labels.size(); ++i)
    if (!map.contains(i) && (labels[i] >= out_rank || !other.contains(labels[i]))) return std::nullopt;
  for (int axis : map) result.push_back(labels[axis]);
  return result;
}

std::optional<NodeId> contract_view(Rewriter& r, const Node& node) {
  const int rank = node.type.rank();
  ContractAttr attr = node.as<ContractAttr>();
  NodeId left = node.operands[0], right = node.operands[1];
  if (const auto labels = labels_through(r.at(left), attr.left, attr.right, rank)) {
    left = r.at(left).operands[0];
    attr.left = *labels;
  } else if (const auto others = labels_through(r.at(right), attr.right, attr.left, rank)) {
    right = r.at(right).operands[0];
    attr.right = *others;
  } else {
    return std::nullopt;
  }
  const NodeId built = r.build.contract(left, right, attr.left, attr.right, rank);
  r.build.graph()[built].type.axes = node.type.axes;
  return r.settle(built);
}

bool is_zero(Rewriter& r, NodeId id) {
  const Node& node = r.at(id);
  return node.op == Op::broadcast && r.is_constant(node.operands[0], 0);
}
std::optional<NodeId> contract_zero(Rewriter& r, const Node& node) {
  if (node.origin.phase == Phase::forward || !(is_zero(r, node.operands[0]) || is_zero(r, node.operands[1]))) return std::nullopt;
  return r.zeros(node.type);
}

constexpr RewriteRule kSumRules[] = {
    {"reduce-nothing", "sum(x) over no axis", "x", Op::reduce, reduce_nothing},
    {"reduce-unit", "sum(x, axis of size 1)", "x without it", Op::reduce, reduce_unit},
    {"reduce-broadcast", "sum(broadcast(x)) over n copies", "x * n", Op::reduce, reduce_broadcast},
    {"reduce-permute", "sum(permute(x))", "sum(x)", Op::reduce, reduce_permute},
    {"contract-zero", "contract(0, x) in a gradient", "0", Op::contract, contract_zero},
    {"contract-view", "contract(permute(x), y)", "contract(x, y) with other labels", Op::contract, contract_view},
};

}  // namespace

std::span<const RewriteRule> sum_rules() { return kSumRules; }

}  // namespace einc
