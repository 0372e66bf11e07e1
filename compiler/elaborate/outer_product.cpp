// SPDX-License-Identifier: Apache-2.0
// Outer products by accident, and the annotations that state one. `x + b` with a bias of the wrong axis has more axes than
// both of its operands: that is an error unless an annotation names all axes of the result, whose order it then decides.
#include <algorithm>
#include <utility>

#include "compiler/elaborate/align.h"
#include "compiler/elaborate/elaborator.h"

namespace einc {
namespace {

std::string quoted_names(const std::vector<Axis>& axes) {
  std::string text = axes.size() == 1 ? "axis " : "axes ";
  for (size_t i = 0; i < axes.size(); ++i)
    text += (i == 0 ? "`" : i + 1 == axes.size() ? " and `" : ", `") + without_marks(axes[i].name).str() + "`";
  return text;
}

}  // namespace

// "[... n m]": the list of axes as an annotation can say it here; nullopt when the caller's axes in it have no name here.
std::optional<std::string> Elaborator::writable_axes(const std::vector<Axis>& axes) const {
  const std::vector<Axis> none;
  const std::vector<Axis>& ellipsis = frame().ellipsis ? *frame().ellipsis : none;
  std::string text = "[";
  for (size_t i = 0; i < axes.size();) {
    if (text.size() > 1) text += " ";
    if (!ellipsis.empty() && axes.size() - i >= ellipsis.size() &&
        std::equal(ellipsis.begin(), ellipsis.end(), axes.begin() + static_cast<std::ptrdiff_t>(i))) {
      text += "...";
      i += ellipsis.size();
    } else if (is_foreign(axes[i].name) || !axes[i].is_named()) {
      return std::nullopt;
    } else {
      text += axes[i++].name.str();
    }
  }
  return text + "]";
}

// The axes of an outer product in the order of an annotation that names just them; nullopt when it names others.
std::optional<AxisList> Elaborator::annotated_order(const Type& found, const ast::Type& written) const {
  AxisList order;
  const auto take = [&](Name name) {
    for (int i = 0; i < found.rank(); ++i) {
      if (found.axis(i).name != name || order.contains(i)) continue;
      order.push_back(i);
      return true;
    }
    return false;
  };
  for (const ast::Axis& axis : written.axes) {
    if (axis.kind == ast::AxisKind::number) return std::nullopt;
    if (axis.kind == ast::AxisKind::ellipsis) {
      if (!frame().ellipsis) return std::nullopt;
      for (const Axis& meant : *frame().ellipsis)
        if (!take(meant.name)) return std::nullopt;
    } else if (!take(axis.name.name)) {
      return std::nullopt;
    }
  }
  return order.size() == found.rank() ? std::optional(order) : std::nullopt;
}

bool Elaborator::refuse_outer_product(NodeId result, const ast::Type* annotation) {
  if (!tree_.is_accidental(graph_, result)) return true;
  const ElementwiseTree::Crossing& at = tree_.crossing();
  const Type &left = build_.type(at.left), &right = build_.type(at.right);
  const std::vector<Axis>& all = build_.type(result).axes;
  auto report = diagnostics_.report(Code::outer_product, at.span, show(build_.type(result)));
  report.label(at.left_span, "this is {}", show(left));
  report.label(at.right_span, "this is {}", show(right));
  const auto axes = writable_axes(all);
  if (annotation) {
    report.label(annotation->span, "this names other axes");
    if (axes) report.hint("if every pair is meant, the annotation names all of {}, in any order", *axes);
    return false;
  }
  std::string cause;
  const auto alike = same_size(left.axes, right.axes, values_);
  if (alike) {
    // The name that is a dim's is more likely the right one.
    const bool rename_left = declared_size(alike->second.name) && !declared_size(alike->first.name);
    const auto& [name, wrong] = rename_left ? std::pair(alike->second, alike->first) : std::pair(alike->first, alike->second);
    std::vector<Axis> renamed = rename_left ? left.axes : right.axes;
    for (Axis& axis : renamed)
      if (axis.name == wrong.name) axis.name = name.name;
    const auto text = writable_axes(renamed);
    cause = fmt::format("axes `{}` and `{}` have the same size: if they are one axis, ", without_marks(name.name).str(),
                        without_marks(wrong.name).str());
    cause += text ? fmt::format("rename it, `({}): {}`", quote(rename_left ? at.left_span : at.right_span), *text) : "give it one name";
  } else {
    const bool left_is_smaller = left.rank() < right.rank();
    const Type &small = left_is_smaller ? left : right, &large = left_is_smaller ? right : left;
    cause = fmt::format("`{}` has the {}, which `{}` lacks", quote(left_is_smaller ? at.left_span : at.right_span),
                        quoted_names(missing_from(large.axes, small.axes)), quote(left_is_smaller ? at.right_span : at.left_span));
  }
  if (frame().unit->bundled)
    report.hint("{}", cause);
  else if (axes)
    report.hint("{}; if every pair is meant, say so: `({}): {}`", cause, quote(at.span), *axes);
  else
    report.hint("{}; if every pair is meant, name the axes in the fn's signature and annotate the result with them", cause);
  return false;
}

// An annotation on a whole expression: it renames the axes of a value by their places, but orders those of an outer product.
std::optional<Value> Elaborator::annotate_whole(const Value& value, const ast::Type& written, Span span, uint32_t first_new_node) {
  if (const auto* tuple = std::get_if<Tuple>(&value.data)) {
    report_several(span, tuple->items.size());
    return std::nullopt;
  }
  std::optional<NodeId> node = to_tensor(*this, value, written.dtype.value_or(DType::real), span);
  if (node && tree_.is_outer(graph_, *node)) {
    const auto order = annotated_order(build_.type(*node), written);
    if (!order && !refuse_outer_product(*node, &written)) return std::nullopt;
    if (order && !order->is_identity()) {
      if (written.dtype) node = conform_dtype(*node, *written.dtype, written.dtype_span, first_new_node);
      if (node) node = build_.permute(*node, *order);
    }
  }
  if (node) node = annotate(*node, written, span, first_new_node);
  return node ? std::optional(Value{*node}) : std::nullopt;
}

// A whole expression with the annotation that it may have: the root of a tree of elementwise ops.
std::optional<Value> Elaborator::evaluate_whole(const ast::Expr& expr, const ast::Type* annotation) {
  const ElementwiseTree around = std::exchange(tree_, ElementwiseTree());
  const uint32_t first_new = graph_.size();
  auto value = evaluate_within_limits(expr);
  if (value && annotation) {
    value = annotate_whole(*value, *annotation, expr.span, first_new);
  } else if (value) {
    const auto* node = std::get_if<NodeId>(&value->data);
    if (node && !refuse_outer_product(*node, nullptr)) value.reset();
  }
  tree_ = around;
  return value;
}

std::optional<Value> Elaborator::evaluate_operand(const ast::Expr& expr) {
  auto value = evaluate_within_limits(expr);
  const auto* node = value ? std::get_if<NodeId>(&value->data) : nullptr;
  if (node && !tree_.made(*node)) tree_.add_leaf(graph_, *node);
  return value;
}

}  // namespace einc
