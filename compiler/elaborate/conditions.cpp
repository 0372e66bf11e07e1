// SPDX-License-Identifier: Apache-2.0
// The condition of an `if`: a value of the compilation, but for `training`, which the graph keeps open until it is simplified for what
// is asked of it (simplify/roots.h). So a condition has two values, one in a training step and one elsewhere.
#include <algorithm>

#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/show.h"

namespace einc {
namespace {

bool holds(ast::BinaryOp op, int order) {
  switch (op) {
    case ast::BinaryOp::lt:
      return order < 0;
    case ast::BinaryOp::le:
      return order <= 0;
    case ast::BinaryOp::gt:
      return order > 0;
    case ast::BinaryOp::ge:
      return order >= 0;
    case ast::BinaryOp::eq:
      return order == 0;
    default:
      return order != 0;
  }
}

bool compares(ast::BinaryOp op) { return op >= ast::BinaryOp::lt && op <= ast::BinaryOp::ne; }

}  // namespace

// ---- conditions

std::optional<Elaborator::Truth> Elaborator::truth_of(const ast::Expr& condition) {
  const auto* binary = condition.as<ast::Binary>();
  if (binary && compares(binary->op)) return compared(condition, *binary);
  if (binary && (binary->op == ast::BinaryOp::logical_and || binary->op == ast::BinaryOp::logical_or)) {
    const auto a = truth_of(*binary->left), b = truth_of(*binary->right);
    if (!a || !b) return std::nullopt;
    if (binary->op == ast::BinaryOp::logical_and) return Truth{a->training && b->training, a->otherwise && b->otherwise};
    return Truth{a->training || b->training, a->otherwise || b->otherwise};
  }
  if (const auto* unary = condition.as<ast::Unary>(); unary && unary->op == ast::UnaryOp::logical_not) {
    const auto a = truth_of(*unary->operand);
    return a ? std::optional(Truth{!a->training, !a->otherwise}) : std::nullopt;
  }
  const auto value = evaluate(condition);
  if (!value) return std::nullopt;
  if (const NodeId* node = std::get_if<NodeId>(&value->data)) {
    if (const auto truth = truth_of(*node)) return truth;
    diagnostics_.report(Code::condition_tensor, condition.span, "a tensor, " + show(build_.type(*node)))
        .hint("a choice that depends on a tensor's values is written where(c, a, b)");
  } else {
    diagnostics_.report(Code::condition_expected, condition.span, std::holds_alternative<Tuple>(value->data) ? "a tuple" : "a number")
        .hint("compare it: n > 0");
  }
  return std::nullopt;
}

// Of a bool that is `true`, `false` or `training`, as a fn's argument may be.
std::optional<Elaborator::Truth> Elaborator::truth_of(NodeId value) const {
  const Node& node = graph_[value];
  if (node.op == Op::training) return Truth{true, false};
  if (node.op == Op::permute && node.type.rank() == 0) return truth_of(node.operands[0]);
  if (is_map(node, MapFn::logical_not)) {
    const auto a = truth_of(node.operands[0]);
    return a ? std::optional(Truth{!a->training, !a->otherwise}) : std::nullopt;
  }
  if (node.op != Op::constant || node.type.dtype != DType::boolean) return std::nullopt;
  const Poly* number = std::get_if<Poly>(&node.as<ConstantAttr>().value);
  const bool truth = number == nullptr || !number->is_zero();
  return Truth{truth, truth};
}

std::optional<Elaborator::Truth> Elaborator::compared(const ast::Expr& condition, const ast::Binary& comparison) {
  const auto left = evaluate(*comparison.left), right = evaluate(*comparison.right);
  if (!left || !right) return std::nullopt;
  for (const auto& [value, span] : {std::pair(&*left, comparison.left->span), std::pair(&*right, comparison.right->span)}) {
    if (std::holds_alternative<Number>(value->data)) continue;
    const NodeId* node = std::get_if<NodeId>(&value->data);
    diagnostics_.report(Code::condition_tensor, node ? span : condition.span, node ? "a tensor, " + show(build_.type(*node)) : "a tuple")
        .hint("a choice that depends on a tensor's values is written where(c, a, b)");
    return std::nullopt;
  }
  const Number &a = std::get<Number>(left->data), &b = std::get<Number>(right->data);
  const Poly *x = std::get_if<Poly>(&a.value), *y = std::get_if<Poly>(&b.value);
  const auto known = [&](const Poly* poly) {
    if (poly == nullptr) return true;
    for (const Name name : poly->free_names())
      if (!values_.contains(name)) {
        if (!checking_) diagnostics_.report(Code::condition_free_dim, condition.span, name).hint("set it: -D {}=12", name);
        return false;
      }
    return true;
  };
  if (!known(x) || !known(y)) return std::nullopt;
  for (const Poly* poly : {x, y})
    if (poly) note_choice(*poly);
  int order = 0;
  if (x && y) {
    const auto difference = (*x - *y).evaluate(values_);
    if (!difference) return std::nullopt;  // a dim divided by 0: reported where the dims are bound
    order = difference->sign();
  } else {
    const auto real = [&](const Number& n, const Poly* poly) {
      return poly ? poly->to_double(values_).value_or(0) : std::get<double>(n.value);
    };
    const double p = real(a, x), q = real(b, y);
    order = p < q ? -1 : p > q ? 1 : 0;
  }
  const bool truth = holds(comparison.op, order);
  return Truth{truth, truth};
}

// Dims that a loop around the `if` counts are its iterations', which cost formulas compare anyway (report/hold_formulas).
void Elaborator::note_choice(const Poly& difference) {
  for (const Name name : difference.free_names()) {
    bool counted = false;
    for (uint32_t at = build_.origin.loop_context; at != 0; at = graph_.loop_contexts[at].parent)
      counted = counted || graph_.loops[graph_.loop_contexts[at].loop].trip_count.contains(name);
    auto& chosen = graph_.chosen_by;
    const auto place = std::ranges::lower_bound(chosen, name.str(), {}, [](Name other) -> const std::string& { return other.str(); });
    if (!counted && (place == chosen.end() || *place != name)) chosen.insert(place, name);
  }
}

}  // namespace einc
