// SPDX-License-Identifier: Apache-2.0
#include "compiler/simplify/rewrite.h"

#include <array>
#include <utility>

#include "compiler/ir/remap.h"

namespace einc {
namespace {

// As many as the op tables have rows.
#define X(...) +1
constexpr size_t kOpCount = 0 EINC_OPS(X), kMapFnCount = 0 EINC_MAP_FNS(X);
#undef X
constexpr int kMaxDepth = 64;  // rules lead to smaller nodes: deeper is a loop among them

// The rules of each op, for maps of each function, in table order.
struct RuleIndex {
  std::array<std::vector<const RewriteRule*>, kOpCount> by_op;
  std::array<std::vector<const RewriteRule*>, kMapFnCount> by_fn;

  RuleIndex() {
    for (const std::span<const RewriteRule> table : {map_rules(), view_rules(), sum_rules()})
      for (const RewriteRule& rule : table) {
        if (rule.op != Op::map) by_op[static_cast<size_t>(rule.op)].push_back(&rule);
        for (size_t fn = 0; fn < kMapFnCount; ++fn)
          if (rule.op == Op::map && (!rule.fn || *rule.fn == static_cast<MapFn>(fn))) by_fn[fn].push_back(&rule);
      }
  }
  const std::vector<const RewriteRule*>& of(const Node& node) const {
    return node.op == Op::map ? by_fn[static_cast<size_t>(node.as<MapAttr>().fn)] : by_op[static_cast<size_t>(node.op)];
  }
};

const RuleIndex& rule_index() {
  static const RuleIndex index;
  return index;
}

}  // namespace

NodeId Rewriter::append(Node&& node) {
  EINC_CHECK(number_.size() == build.graph().size(), "a node was built and not settled");
  bool number = node.op == Op::constant;
  if ((node.op == Op::map || node.op == Op::cast) && node.type.axes.empty()) {
    number = true;
    for (NodeId operand : node.operands) number = number && is_number(operand);
  }
  number_.push_back(number);
  return build.append(std::move(node));
}

std::optional<NodeId> Rewriter::apply_rules(const Node& node) {
  for (const RewriteRule* rule : rule_index().of(node)) {
    std::optional<NodeId> result = rule->apply(*this, node);
    if (!result) continue;
    ++applied;
    const Type& type = this->type(*result);
    EINC_CHECK(type.same_sizes(node.type), "rule {} changes {} to {}", rule->name, to_string(node.type), to_string(type));
    return type.dtype == node.type.dtype ? *result : settle(build.cast(*result, node.type.dtype));
  }
  return std::nullopt;
}

NodeId Rewriter::emit(Node&& node) {
  EINC_CHECK(depth_ < kMaxDepth, "rewrite rules do not end");
  if (node.origin.pinned) return append(std::move(node));
  ++depth_;
  const Origin outer = std::exchange(build.origin, node.origin);
  const std::optional<NodeId> replaced = apply_rules(node);
  build.origin = outer;
  --depth_;
  return replaced ? *replaced : append(std::move(node));
}

NodeId Rewriter::settle(NodeId built) {
  std::vector<Node>& nodes = build.graph().nodes;
  if (built.index + 1 != nodes.size() || number_.size() == nodes.size()) return built;  // an operand came back as it is
  Node node = std::move(nodes.back());
  nodes.pop_back();
  return emit(std::move(node));
}

const ScalarValue* Rewriter::constant(NodeId id) const {
  const Node& node = at(id);
  return node.op == Op::constant ? &node.as<ConstantAttr>().value : nullptr;
}

bool Rewriter::is_constant(NodeId id, int64_t value) const {
  const ScalarValue* known = constant(id);
  if (!known) return false;
  if (const Poly* p = std::get_if<Poly>(known)) return *p == Poly(value);
  return std::get<double>(*known) == static_cast<double>(value);
}

NodeId Rewriter::place(NodeId id, const AxisList& map, const Type& type) {
  AxisList order, increasing;
  for (int axis = 0; axis < type.rank(); ++axis)
    if (const int i = map.find(axis); i >= 0) {
      order.push_back(i);
      increasing.push_back(axis);
    }
  if (!order.is_identity()) id = settle(build.permute(id, order));
  if (increasing.size() < type.rank()) id = settle(build.broadcast(id, increasing, type.axes));
  return this->type(id).dtype == type.dtype ? id : settle(build.cast(id, type.dtype));
}

NodeId Rewriter::zeros(const Type& type) { return place(settle(build.constant(Poly(0), type.dtype)), {}, type); }

Rewritten rewrite(Graph graph) {
  std::vector<Node> nodes = std::move(graph.nodes);
  graph.nodes.clear();
  graph.nodes.reserve(nodes.size() + nodes.size() / 8);
  Rewriter rewriter(graph);
  std::vector<NodeId> to(nodes.size());
  for (size_t i = 0; i < nodes.size(); ++i) {
    for (NodeId& operand : nodes[i].operands) operand = to[operand.index];
    to[i] = rewriter.emit(std::move(nodes[i]));
  }
  for_each_root(graph, [&](NodeId& id) { id = to[id.index]; });
  return {std::move(graph), rewriter.applied};
}

}  // namespace einc
