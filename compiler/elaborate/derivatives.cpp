// SPDX-License-Identifier: Apache-2.0
// vjp(y, x, dy): dy times the derivative of y by x, summed over y's axes. jvp(y, x, v): the derivative times v, summed over x's.
// jvp is two reverse sweeps (Townsend 2017, "A new trick for calculating Jacobian vector products"): with u in y's stead,
// g(u) = vjp(y, x, u) is linear in u, so vjp(g, u, v) is what is wanted, and u itself is in nothing of it.
#include "compiler/autodiff/differentiate.h"
#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/indexing.h"

namespace einc {

NodeId Elaborator::zeros_like(NodeId value) {
  const Type type = build_.type(value);
  const NodeId zero = build_.constant(Poly(0), type.dtype);
  return type.rank() == 0 ? zero : build_.broadcast(zero, {}, type.axes);
}

std::optional<Value> Elaborator::product_with_derivative(const ast::Call& call, Span whole) {
  const bool forward = call.callee.name == Name("jvp");
  const std::string_view op = forward ? "jvp" : "vjp";
  bool positional = call.arguments.size() == 3;
  for (const ast::Argument& argument : call.arguments) positional = positional && !argument.name;
  if (!positional) {
    diagnostics_.report(Code::derivative_arguments, whole, op)
        .hint("write {}",
              forward ? "jvp(y, x, v): the change of y when x changes by v" : "vjp(y, x, dy): the gradient of sum(dy * y) by x");
    return std::nullopt;
  }
  const ast::Expr &y_expr = *call.arguments[0].value, &x_expr = *call.arguments[1].value, &direction_expr = *call.arguments[2].value;
  const auto y = evaluate_tensor(y_expr), x = evaluate_tensor(x_expr);
  const auto direction = evaluate(direction_expr);
  if (!y || !x || !direction) return std::nullopt;
  for (const auto& [node, span] : {std::pair(*y, y_expr.span), std::pair(*x, x_expr.span)})
    if (!is_floating(build_.type(node).dtype)) {
      diagnostics_.report(Code::grad_not_floating, span, show(build_.type(node)));
      return std::nullopt;
    }
  const NodeId like = forward ? *x : *y;
  const auto given = to_tensor(*this, *direction, build_.type(like).dtype, direction_expr.span);
  if (!given) return std::nullopt;
  const bool number = std::holds_alternative<Number>(direction->data);
  if (!number && build_.type(*given).rank() != build_.type(like).rank()) {
    diagnostics_.report(Code::direction_axes, direction_expr.span, forward ? "direction" : "cotangent", forward ? "x" : "y",
                        show(build_.type(like)), show(build_.type(*given)));
    return std::nullopt;
  }
  auto seed = fit_axes(*this, *given, build_.type(like).axes, direction_expr.span);
  if (!seed) return std::nullopt;
  if (build_.type(*seed).dtype != build_.type(like).dtype) seed = build_.cast(*seed, build_.type(like).dtype);

  bool met_custom = false;
  const NodeId u = forward ? zeros_like(*y) : *seed;
  const NodeId by_x[] = {*x};
  NodeId result = differentiate(build_, *y, by_x, {u, &custom_gradients_, &met_custom})[0];
  if (forward && met_custom) {
    diagnostics_.report(Code::jvp_of_block, whole).hint("the block says how gradients go back through the fn, not how changes go on");
    return std::nullopt;
  }
  if (forward && result.valid()) {
    const NodeId by_u[] = {u};
    result = differentiate(build_, result, by_u, {*seed, &custom_gradients_, nullptr})[0];
  }
  if (result.valid()) return Value{result};
  diagnostics_.report(Code::zero_gradient, whole, "this").label(x_expr.span, "nothing between this value and y depends on it");
  return Value{zeros_like(forward ? *y : *x)};
}

}  // namespace einc
