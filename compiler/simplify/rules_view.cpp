// SPDX-License-Identifier: Apache-2.0
// Rewrite rules of views, of ops that move elements, of casts and of constants.
#include <algorithm>

#include "compiler/simplify/fold.h"
#include "compiler/simplify/rewrite.h"

namespace einc {
namespace {

// The operand's definition when it is `op` and may be looked through.
std::optional<Node> inner(Rewriter& r, const Node& node, Op op) {
  const Node& x = r.at(node.operands[0]);
  return x.op == op && !x.origin.pinned ? std::optional(x) : std::nullopt;
}

std::optional<NodeId> exact_constant(Rewriter& r, const Node& node) {
  if (!std::holds_alternative<double>(node.as<ConstantAttr>().value)) return std::nullopt;
  const ScalarValue value = exact_value(node.as<ConstantAttr>().value);
  if (std::holds_alternative<double>(value)) return std::nullopt;
  return r.settle(r.build.constant(value, node.type.dtype));
}

std::optional<NodeId> drop_stop_gradient(Rewriter&, const Node& node) { return node.operands[0]; }

// Any view of one number is that number everywhere.
std::optional<NodeId> view_of_scalar(Rewriter& r, const Node& node) {
  const auto x = inner(r, node, Op::broadcast);
  return x && r.type(x->operands[0]).rank() == 0 ? std::optional(r.place(x->operands[0], {}, node.type)) : std::nullopt;
}

// Axis names alone are the source's affair: simplify() restores those of outputs.
std::optional<NodeId> drop_rename(Rewriter&, const Node& node) {
  return node.as<PermuteAttr>().order.is_identity() ? std::optional(node.operands[0]) : std::nullopt;
}
std::optional<NodeId> permute_permute(Rewriter& r, const Node& node) {
  const auto x = inner(r, node, Op::permute);
  if (!x) return std::nullopt;
  AxisList order;
  for (int axis : node.as<PermuteAttr>().order) order.push_back(x->as<PermuteAttr>().order[axis]);
  return r.settle(r.build.permute(x->operands[0], order));
}

std::optional<NodeId> drop_broadcast(Rewriter& r, const Node& node) {
  return r.type(node.operands[0]).rank() == node.type.rank() ? std::optional(node.operands[0]) : std::nullopt;
}
std::optional<NodeId> broadcast_broadcast(Rewriter& r, const Node& node) {
  const auto x = inner(r, node, Op::broadcast);
  if (!x) return std::nullopt;
  AxisList map;
  for (int axis : x->as<BroadcastAttr>().map) map.push_back(node.as<BroadcastAttr>().map[axis]);
  return r.settle(r.build.broadcast(x->operands[0], map, node.type.axes));
}

bool all_one(const AxisList& counts) {
  return std::all_of(counts.begin(), counts.end(), [](int n) { return n == 1; });
}
std::optional<NodeId> split_nothing(Rewriter&, const Node& node) {
  return all_one(node.as<SplitAttr>().counts) ? std::optional(node.operands[0]) : std::nullopt;
}
std::optional<NodeId> merge_nothing(Rewriter&, const Node& node) {
  return all_one(node.as<MergeAttr>().counts) ? std::optional(node.operands[0]) : std::nullopt;
}
std::optional<NodeId> split_merge(Rewriter& r, const Node& node) {
  const auto x = inner(r, node, Op::merge);
  const bool inverse = x && x->as<MergeAttr>().counts == node.as<SplitAttr>().counts && r.type(x->operands[0]).same_sizes(node.type);
  return inverse ? std::optional(x->operands[0]) : std::nullopt;
}
std::optional<NodeId> merge_split(Rewriter& r, const Node& node) {
  const auto x = inner(r, node, Op::split);
  const bool inverse = x && x->as<SplitAttr>().counts == node.as<MergeAttr>().counts && r.type(x->operands[0]).same_sizes(node.type);
  return inverse ? std::optional(x->operands[0]) : std::nullopt;
}

std::optional<NodeId> slice_all(Rewriter& r, const Node& node) {
  const SliceAttr& attr = node.as<SliceAttr>();
  const bool all =
      attr.start.is_zero() && attr.step == 1 && r.type(node.operands[0]).axis(attr.axis).size == node.type.axis(attr.axis).size;
  return all ? std::optional(node.operands[0]) : std::nullopt;
}
std::optional<NodeId> slice_pad(Rewriter& r, const Node& node) {
  const SliceAttr& attr = node.as<SliceAttr>();
  const auto x = inner(r, node, Op::pad);
  const bool inverse = x && attr.step == 1 && x->as<PadAttr>().before[static_cast<size_t>(attr.axis)] == attr.start &&
                       r.type(x->operands[0]).same_sizes(node.type);
  return inverse ? std::optional(x->operands[0]) : std::nullopt;
}
std::optional<NodeId> slice_concat(Rewriter& r, const Node& node) {
  const SliceAttr& attr = node.as<SliceAttr>();
  const auto x = inner(r, node, Op::concat);
  if (!x || attr.step != 1 || x->as<ConcatAttr>().axis != attr.axis) return std::nullopt;
  Poly start;
  for (NodeId part : x->operands) {
    const Poly& size = r.type(part).axis(attr.axis).size;
    if (start == attr.start && size == node.type.axis(attr.axis).size) return part;
    start += size;
  }
  return std::nullopt;
}

std::optional<NodeId> pad_nothing(Rewriter& r, const Node& node) {
  return r.type(node.operands[0]).same_sizes(node.type) ? std::optional(node.operands[0]) : std::nullopt;
}
std::optional<NodeId> concat_one(Rewriter&, const Node& node) {
  return node.operands.size() == 1 ? std::optional(node.operands[0]) : std::nullopt;
}

std::optional<NodeId> cast_same(Rewriter& r, const Node& node) {
  return r.type(node.operands[0]).dtype == node.type.dtype ? std::optional(node.operands[0]) : std::nullopt;
}
// Formats that may round the value keep the cast.
std::optional<NodeId> cast_constant(Rewriter& r, const Node& node) {
  const ScalarValue* value = r.constant(node.operands[0]);
  const DType to = node.type.dtype;
  if (!value || (to != DType::real && to != DType::f32 && to != DType::f64)) return std::nullopt;
  if (r.type(node.operands[0]).dtype == DType::f64) return std::nullopt;
  return r.settle(r.build.constant(ScalarValue(*value), to));
}

constexpr RewriteRule kViewRules[] = {
    {"exact-constant", "0.25", "1/4", Op::constant, exact_constant},
    {"stop-gradient", "stop_gradient(x)", "x", Op::stop_gradient, drop_stop_gradient},
    {"permute-scalar", "permute(broadcast(c))", "broadcast(c)", Op::permute, view_of_scalar},
    {"rename", "permute(x) in place", "x", Op::permute, drop_rename},
    {"permute-permute", "permute(permute(x))", "permute(x)", Op::permute, permute_permute},
    {"broadcast-nothing", "broadcast(x) without a new axis", "x", Op::broadcast, drop_broadcast},
    {"broadcast-broadcast", "broadcast(broadcast(x))", "broadcast(x)", Op::broadcast, broadcast_broadcast},
    {"split-scalar", "split(broadcast(c))", "broadcast(c)", Op::split, view_of_scalar},
    {"split-nothing", "split(x) into itself", "x", Op::split, split_nothing},
    {"split-merge", "split(merge(x)), inverse", "x", Op::split, split_merge},
    {"merge-scalar", "merge(broadcast(c))", "broadcast(c)", Op::merge, view_of_scalar},
    {"merge-nothing", "merge(x) of single axes", "x", Op::merge, merge_nothing},
    {"merge-split", "merge(split(x)), inverse", "x", Op::merge, merge_split},
    {"slice-scalar", "slice(broadcast(c))", "broadcast(c)", Op::slice, view_of_scalar},
    {"slice-all", "x[0:n]", "x", Op::slice, slice_all},
    {"slice-pad", "slice(pad(x)), inverse", "x", Op::slice, slice_pad},
    {"slice-concat", "slice(concat(x, y)), one part", "x", Op::slice, slice_concat},
    {"diagonal-scalar", "diagonal(broadcast(c))", "broadcast(c)", Op::diagonal, view_of_scalar},
    {"window-scalar", "window(broadcast(c))", "broadcast(c)", Op::window, view_of_scalar},
    {"pad-nothing", "pad(x) by 0", "x", Op::pad, pad_nothing},
    {"concat-one", "concat(x)", "x", Op::concat, concat_one},
    {"cast-same", "cast(x, its dtype)", "x", Op::cast, cast_same},
    {"cast-constant", "cast(c, f32)", "c", Op::cast, cast_constant},
};

}  // namespace

std::span<const RewriteRule> view_rules() { return kViewRules; }

}  // namespace einc
