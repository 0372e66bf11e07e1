// SPDX-License-Identifier: Apache-2.0
// Built-ins that make tensors from axes alone (iota, zeros, ones, full), one_hot and dropout.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/axis_ops.h"
#include "compiler/elaborate/indexing.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

bool has_axis(const std::vector<Axis>& axes, Name name) {
  return std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == name; });
}

NodeId filled(Builder& build, int value, const std::vector<Axis>& axes) {
  const NodeId scalar = build.constant(Poly(value));
  return axes.empty() ? scalar : build.broadcast(scalar, {}, axes);
}

}  // namespace

// iota(axis): 0, 1, 2, ... along it. `iota(k = 4)` makes the axis.
std::optional<Value> call_iota(Context& context, const ast::Call& call) {
  if (call.arguments.size() != 1) {
    context.diagnostics()
        .report(Code::builtin_arguments, span_of(call), call.callee.name, "1 argument", call.arguments.size())
        .hint("write `iota(axis)`");
    return std::nullopt;
  }
  const auto axis = new_axis(context, call.arguments[0]);
  if (!axis) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  return Value{context.build().iota(*axis, index_dtype(context, axis->size))};
}

// one_hot(i, axis): 1 where the new last axis equals i, else 0. Written as ones scattered into zeros: it moves data and
// computes nothing, and an index outside the axis is an error when running.
std::optional<Value> call_one_hot(Context& context, const ast::Call& call) {
  if (call.arguments.size() != 2 || call.arguments[0].name) {
    context.diagnostics()
        .report(Code::builtin_arguments, span_of(call), call.callee.name, "2 arguments", call.arguments.size())
        .hint("write `one_hot(i, axis)`");
    return std::nullopt;
  }
  const auto ids = context.evaluate_tensor(*call.arguments[0].value);
  const auto axis = new_axis(context, call.arguments[1]);
  if (!ids || !axis || !check_ids(context, *ids, call.arguments[0].value->span)) return std::nullopt;
  Builder& build = context.build();
  const Type type = build.type(*ids);
  if (has_axis(type.axes, axis->name)) {
    context.diagnostics().report(Code::axis_exists, call.arguments[1].span, context.show(type), without_marks(axis->name));
    return std::nullopt;
  }
  if (!check_rank(context, type.axes.size() + 1, span_of(call))) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  std::vector<Axis> axes = type.axes;
  axes.push_back(*axis);
  GatherAttr attr{type.rank(), AxisList::range(type.rank()), AxisList::range(type.rank())};
  attr.table_map.push_back(kNoAxis);
  const NodeId ones = filled(build, 1, type.axes), zeros = filled(build, 0, axes);
  return Value{build.scatter_set(zeros, ones, *ids, attr)};
}

std::optional<Value> call_dropout(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 2, 2, "`dropout(x, 0.1)`")) return std::nullopt;
  const auto arguments = positional_arguments(call);
  const auto x = context.evaluate_tensor(*arguments[0]->value);
  const auto p = constant_argument(context, *arguments[1], "the probability of dropout");
  if (!x || !p) return std::nullopt;
  Builder& build = context.build();
  const DType dtype = build.type(*x).dtype;
  if (!is_floating(dtype)) {
    context.diagnostics()
        .report(Code::floating_expected, arguments[0]->value->span, "dropout", to_string(dtype))
        .hint("cast it first: `cast(x, f32)`");
    return std::nullopt;
  }
  if (!(*p >= 0 && *p < 1)) {
    context.diagnostics().report(Code::probability, arguments[1]->value->span, *p);
    return std::nullopt;
  }
  if (*p == 0) return Value{*x};
  const NodesFrom nodes_from(context, span_of(call));
  return Value{build.dropout(*x, *p, context.random_stream(span_of(call)))};
}

// zeros(axes...), ones(axes...), full(axes..., value): a number or a scalar, spread over the axes. Zeros and ones are real.
std::optional<Value> call_filled(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  const ast::Argument* value = name == "full" ? find_argument(call, "value") : nullptr;
  std::vector<const ast::Argument*> axis_arguments;
  for (const ast::Argument& argument : call.arguments)
    if (&argument != value) axis_arguments.push_back(&argument);
  if (name == "full" && value == nullptr) {
    const auto positional = positional_arguments(call);
    if (positional.empty()) {
      context.diagnostics()
          .report(Code::builtin_arguments, span_of(call), call.callee.name, "axes and a value", call.arguments.size())
          .hint("write `full(axis, 0.5)`, or `full(k = 4, value = 0.5)`");
      return std::nullopt;
    }
    value = positional.back();
    std::erase(axis_arguments, value);
  }
  const auto axes = new_axes(context, axis_arguments);
  std::optional<NodeId> scalar;
  if (value != nullptr)
    scalar = context.evaluate_tensor(*value->value);
  else
    scalar = context.build().constant(Poly(name == "zeros" ? 0 : 1));
  if (!axes || !scalar || !check_rank(context, axes->size(), span_of(call))) return std::nullopt;
  Builder& build = context.build();
  if (build.type(*scalar).rank() > 0) {
    context.diagnostics()
        .report(Code::builtin_arguments, value->span, call.callee.name, "a number or a scalar", context.show(build.type(*scalar)))
        .hint("a tensor is spread along new axes by `repeat`");
    return std::nullopt;
  }
  const NodesFrom nodes_from(context, span_of(call));
  return Value{axes->empty() ? *scalar : build.broadcast(*scalar, {}, *axes)};
}

}  // namespace einc
