// SPDX-License-Identifier: Apache-2.0
// concat, stack and flip: tensors put side by side or turned along a named axis.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/elaborate/align.h"
#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/axis_ops.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

struct Parts {
  std::vector<NodeId> nodes;
  std::vector<Span> spans;
};

// All positional arguments but the last.
std::optional<Parts> read_parts(Context& context, std::span<const ast::Argument* const> arguments) {
  Parts parts;
  bool fine = true;
  for (const ast::Argument* argument : arguments) {
    const auto node = context.evaluate_tensor(*argument->value);
    fine = fine && node;
    if (!node) continue;
    parts.nodes.push_back(*node);
    parts.spans.push_back(argument->value->span);
  }
  if (!fine) return std::nullopt;
  return parts;
}

bool same_names(const Type& a, const Type& b) {
  return std::equal(a.axes.begin(), a.axes.end(), b.axes.begin(), b.axes.end(),
                    [](const Axis& x, const Axis& y) { return x.name == y.name; });
}

// The order of `type`'s axes that gives the names of `first`; nullopt when the two have other names.
std::optional<AxisList> order_like(const Type& first, const Type& type) {
  if (first.rank() != type.rank()) return std::nullopt;
  if (same_names(first, type)) return AxisList::range(type.rank());
  AxisList order;
  for (const Axis& axis : first.axes) {
    int found = -1;
    for (int i = 0; i < type.rank(); ++i)
      if (axis.is_named() && type.axis(i).name == axis.name && !order.contains(i)) found = i;
    if (found < 0) return std::nullopt;
    order.push_back(found);
  }
  return order;
}

// "[n k]": the annotation that gives `type` the names of `first`; empty where the sizes of two axes besides `joined` differ.
std::string named_like(const Type& first, const Type& type, int joined) {
  if (first.rank() != type.rank()) return "";
  for (int i = 0; i < first.rank(); ++i)
    if (!first.axis(i).is_named() || (i != joined && !(first.axis(i).size == type.axis(i).size))) return "";
  return suggest_annotation(first.axes);
}

// Brings all parts to the axis order of the first and to one dtype. Axis `joined` may differ in size (-1: none may).
bool unify(Context& context, std::string_view op, Parts& parts, int joined) {
  Builder& build = context.build();
  const Type first = build.type(parts.nodes[0]);
  DType dtype = first.dtype;
  bool fine = true;
  for (size_t k = 1; k < parts.nodes.size(); ++k) {
    const Type type = build.type(parts.nodes[k]);
    dtype = promote(dtype, type.dtype);
    const auto order = order_like(first, type);
    if (!order) {
      auto report = context.diagnostics().report(Code::parts_differ, parts.spans[k], op, context.show(first), context.show(type));
      report.label(parts.spans[0], "{}", context.show(first));
      if (const std::string renamed = named_like(first, type, joined); !renamed.empty())
        report.hint("if the axes are the same in order, rename them: `({}): {}`", context.quote(parts.spans[k]), renamed);
      fine = false;
      continue;
    }
    for (int i = 0; i < first.rank(); ++i) {
      const Axis& axis = type.axis((*order)[i]);
      if (i == joined || axis.size == first.axis(i).size) continue;
      context.diagnostics()
          .report(Code::axis_sizes_differ, parts.spans[k], without_marks(axis.name), context.describe_size(first.axis(i).size),
                  context.describe_size(axis.size))
          .label(parts.spans[0], "{}", context.show(first))
          .label(parts.spans[k], "{}", context.show(type));
      fine = false;
    }
    if (!order->is_identity()) parts.nodes[k] = build.permute(parts.nodes[k], *order);
  }
  for (NodeId& node : parts.nodes) node = convert(build, node, dtype);
  return fine;
}

}  // namespace

// concat(a, b, ..., axis): the axis keeps its name, its sizes are added.
std::optional<Value> call_concat(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 2, SIZE_MAX, "`concat(a, b, axis)`")) return std::nullopt;
  const auto arguments = positional_arguments(call);
  auto parts = read_parts(context, std::span(arguments).first(arguments.size() - 1));
  if (!parts) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  const Type first = context.build().type(parts->nodes[0]);
  const auto axis = axis_argument(context, first, *arguments.back());
  if (!axis || !unify(context, "concat", *parts, *axis)) return std::nullopt;
  return Value{context.build().concat(parts->nodes, *axis)};
}

// stack(a, b, ..., new_axis): the new axis comes first, its size is the number of parts.
std::optional<Value> call_stack(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 2, SIZE_MAX, "`stack(a, b, new_axis)`")) return std::nullopt;
  const auto arguments = positional_arguments(call);
  const ast::Expr& last = *arguments.back()->value;
  const auto* name = last.as<ast::NameRef>();
  if (name == nullptr && last.kind() != ast::ExprKind::invalid)
    context.diagnostics().report(Code::axis_name_expected, last.span).hint("give the new axis a name: `stack(a, b, pair)`");
  auto parts = read_parts(context, std::span(arguments).first(arguments.size() - 1));
  if (!parts || name == nullptr) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  if (!unify(context, "stack", *parts, -1)) return std::nullopt;
  const Type type = build.type(parts->nodes[0]);
  for (const Axis& axis : type.axes)
    if (axis.name == name->name) {
      context.diagnostics()
          .report(Code::axis_exists, last.span, context.show(type), name->name)
          .hint("choose another name, or use `concat` along that axis");
      return std::nullopt;
    }
  const Poly count(static_cast<int64_t>(parts->nodes.size()));
  const auto declared = context.declared_size(name->name);
  if (declared && *declared != count) {
    context.diagnostics()
        .report(Code::axis_has_declared_size, last.span, name->name, context.describe_size(*declared), count)
        .hint("give the new axis a name of its own");
    return std::nullopt;
  }
  if (!check_rank(context, type.axes.size() + 1, span_of(call))) return std::nullopt;
  if (!declared) context.introduce_local(name->name, count, last.span);
  std::vector<Axis> axes{Axis{name->name, Poly(1)}};
  axes.insert(axes.end(), type.axes.begin(), type.axes.end());
  AxisList counts{0};
  for (int i = 0; i < type.rank(); ++i) counts.push_back(1);
  for (NodeId& node : parts->nodes) node = build.merge(node, counts, axes);
  return Value{build.concat(parts->nodes, 0)};
}

// flip(x, axis, ...): each axis from its end to its beginning.
std::optional<Value> call_flip(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 2, SIZE_MAX, "`flip(x, axis)`")) return std::nullopt;
  const auto arguments = positional_arguments(call);
  const auto x = context.evaluate_tensor(*arguments[0]->value);
  if (!x) return std::nullopt;
  Builder& build = context.build();
  const auto axes = axes_or_all(context, Type(build.type(*x)), std::span(arguments).subspan(1));
  if (!axes) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  NodeId flipped = *x;
  for (int axis : *axes) {
    const Poly size = build.type(flipped).axis(axis).size;
    flipped = build.slice(flipped, axis, size - Poly(1), size, -1);
  }
  return Value{flipped};
}

}  // namespace einc
