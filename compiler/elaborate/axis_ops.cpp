// Built-ins that take a tensor and the names of axes: reductions, positions of extremes, softmax and its relatives.
#include "compiler/elaborate/axis_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/elaborate/align.h"
#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/indexing.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/reductions.h"
#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

using Arguments = std::vector<const ast::Argument*>;

std::optional<Value> call_reduction(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 1, SIZE_MAX, fmt::format("`{}(x, axis)`", name))) return std::nullopt;
  const Arguments arguments = positional_arguments(call);
  const auto x = context.evaluate(*arguments[0]->value);
  if (!x) return std::nullopt;
  return reduce_value(context, *parse_reduction(name), *x, std::span(arguments).subspan(1), span_of(call));
}

// First argument and one axis of it.
struct AlongAxis {
  NodeId x;
  int axis;
};

std::optional<AlongAxis> read_along_axis(Context& context, const Arguments& arguments, size_t axis_argument_index) {
  const auto x = context.evaluate_tensor(*arguments[0]->value);
  if (!x) return std::nullopt;
  const Type type = context.build().type(*x);
  const auto axis = axis_argument(context, type, *arguments[axis_argument_index]);
  if (!axis) return std::nullopt;
  return AlongAxis{*x, *axis};
}

// argmax(x, axes...): the position of the first extreme; over several axes, counted row by row in the order they are named.
std::optional<Value> call_arg_reduction(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 1, SIZE_MAX, fmt::format("`{}(x, axis)`", name))) return std::nullopt;
  const Arguments arguments = positional_arguments(call);
  const auto x = context.evaluate_tensor(*arguments[0]->value);
  if (!x) return std::nullopt;
  Builder& build = context.build();
  const Type type = build.type(*x);
  const auto axes = axes_or_all(context, type, std::span(arguments).subspan(1));
  if (!axes) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  AxisList order;
  std::vector<Axis> out_axes;
  for (int i = 0; i < type.rank(); ++i)
    if (!axes->contains(i)) {
      order.push_back(i);
      out_axes.push_back(type.axis(i));
    }
  AxisList counts;
  for (int i = 0; i < order.size(); ++i) counts.push_back(1);
  counts.push_back(axes->size());
  Poly size(1);
  for (int axis : *axes) {
    order.push_back(axis);
    size = size * type.axis(axis).size;
  }
  const int kept = static_cast<int>(out_axes.size());
  NodeId flat = *x;
  int axis = kept;
  if (axes->size() == 1) {
    axis = (*axes)[0];
  } else {
    if (!order.is_identity()) flat = build.permute(flat, order);
    out_axes.push_back(Axis{Name("(all)"), size});
    flat = build.merge(flat, counts, out_axes);
  }
  const NodeId position = build.arg_reduce(name == "argmax" ? ReduceFn::max : ReduceFn::min, flat, axis);
  build.graph()[position].type.dtype = index_dtype(context, size);
  return Value{position};
}

std::optional<Value> call_softmax(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 2, 2, fmt::format("`{}(x, axis)`", name))) return std::nullopt;
  const auto along = read_along_axis(context, positional_arguments(call), 1);
  if (!along) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const DType dtype = build.type(along->x).dtype;
  const NodeId x = widen(build, along->x);
  if (name == "softmax") return Value{narrow(build, build.softmax(x, along->axis), dtype)};
  // log_softmax(x) = x - logsumexp(x)
  const Type type = build.type(x);
  const NodeId operands[] = {x, build.logsumexp(x, {along->axis})};
  AxisList kept;
  for (int i = 0; i < type.rank(); ++i)
    if (i != along->axis) kept.push_back(i);
  const AxisList maps[] = {AxisList::range(type.rank()), kept};
  return Value{narrow(build, build.map(MapFn::sub, operands, maps, type.axes, type.dtype), dtype)};
}

std::optional<Value> call_cumsum(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 2, 2, "`cumsum(x, axis)`")) return std::nullopt;
  const auto along = read_along_axis(context, positional_arguments(call), 1);
  if (!along) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const DType dtype = build.type(along->x).dtype;
  const NodeId x = is_floating(dtype) ? widen(build, along->x) : convert(build, along->x, DType::i64);
  return Value{narrow(build, build.scan(ReduceFn::sum, x, along->axis, Direction::forward), dtype)};
}

// Targets that carry the class axis, or scores over an axis of its size, are no class numbers.
bool refuse_one_hot(Context& context, const Type& logits, int class_axis, const Type& targets, Span span) {
  const Axis& classes = logits.axis(class_axis);
  for (const Axis& axis : targets.axes) {
    const bool of_logits =
        std::any_of(logits.axes.begin(), logits.axes.end(), [&](const Axis& other) { return other.is_named() && other.name == axis.name; });
    const bool carries = axis.is_named() && axis.name == classes.name;
    if (!carries && (is_integer(targets.dtype) || of_logits || !(axis.size == classes.size))) continue;
    const Name name = context.known_name(axis.name);
    context.diagnostics()
        .report(Code::one_hot_targets, span, context.show(targets), name)
        .hint("for one-hot targets write argmax({}, {})", context.quote(span), name);
    return false;
  }
  return true;
}

// A row of logits has one target, or several, or several rows share one. Targets whose axes cross those of the rows would give a loss
// for every pair: an outer product by accident.
bool refuse_crossed(Context& context, const Type& logits, int class_axis, const Type& targets, Span logits_span, Span target_span) {
  std::vector<Axis> rows = logits.axes;
  rows.erase(rows.begin() + class_axis);
  const auto of_targets = missing_from(rows, targets.axes), of_rows = missing_from(targets.axes, rows);
  if (of_targets.empty() || of_rows.empty()) return true;
  const auto alike = same_size(targets.axes, rows);
  const auto& [mine, theirs] = alike ? *alike : std::pair(of_targets[0], of_rows[0]);
  auto report = context.diagnostics().report(Code::crossed_targets, target_span, context.show(targets), context.known_name(theirs.name),
                                             context.show(logits), context.known_name(mine.name));
  report.label(logits_span, "the logits");
  if (!alike) {
    report.hint("targets have the axes of the logits but the class axis");
    return false;
  }
  std::vector<Axis> renamed = targets.axes;
  for (Axis& axis : renamed)
    if (axis.name == mine.name) axis.name = theirs.name;
  report.hint("axes `{}` and `{}` have the same size: if they are one axis, rename it, `({}): {}`", context.known_name(mine.name),
              context.known_name(theirs.name), context.quote(target_span), suggest_annotation(renamed));
  return false;
}

// -log softmax(logits, axis) at the target: logsumexp(logits, axis) - logits[axis = targets].
std::optional<Value> call_cross_entropy(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 3, 3, "`cross_entropy(logits, targets, axis)`")) return std::nullopt;
  const Arguments arguments = positional_arguments(call);
  const auto along = read_along_axis(context, arguments, 2);
  const auto targets = context.evaluate_tensor(*arguments[1]->value);
  if (!along || !targets) return std::nullopt;
  const Span target_span = arguments[1]->value->span;
  const Type &of_logits = context.build().type(along->x), &of_targets = context.build().type(*targets);
  if (!refuse_one_hot(context, of_logits, along->axis, of_targets, target_span)) return std::nullopt;
  if (!refuse_crossed(context, of_logits, along->axis, of_targets, arguments[0]->value->span, target_span)) return std::nullopt;
  if (!check_ids(context, *targets, target_span)) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const DType dtype = build.type(along->x).dtype;
  const NodeId logits = widen(build, along->x);
  const Type type = build.type(logits);
  const int indexed[] = {along->axis};
  auto plan = plan_gather(context, type, along->axis, build.type(*targets), indexed, target_span);
  if (!plan) return std::nullopt;
  const NodeId total = build.logsumexp(logits, {along->axis});
  const NodeId picked = build.gather(logits, *targets, plan->attr, plan->out_axes);
  // `total` has the table's axes but the indexed one: the gather knows where each went.
  AxisList total_map;
  for (int i = 0; i < type.rank(); ++i)
    if (i != along->axis) total_map.push_back(plan->attr.table_map[i]);
  const NodeId operands[] = {total, picked};
  const AxisList maps[] = {total_map, AxisList::range(static_cast<int>(plan->out_axes.size()))};
  return Value{narrow(build, build.map(MapFn::sub, operands, maps, plan->out_axes, type.dtype), dtype)};
}

// top_k(x, axis, k): the k largest in descending order, ties by lower index; top_k_index: where they are.
std::optional<Value> call_top_k(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 3, 3, fmt::format("`{}(x, axis, k)`", name))) return std::nullopt;
  const Arguments arguments = positional_arguments(call);
  const auto along = read_along_axis(context, arguments, 1);
  const auto k = context.evaluate_size(*arguments[2]->value);
  if (!along || !k) return std::nullopt;
  Builder& build = context.build();
  const Axis axis = build.type(along->x).axis(along->axis);
  for (const Condition& condition : {Condition{ConditionKind::at_least, axis.size, *k, -1, "the axis of top_k"},
                                     Condition{ConditionKind::at_least, *k, Poly(1), -1, "k of top_k"}}) {
    const Verdict verdict = decide(condition);
    if (verdict == Verdict::never) {
      context.diagnostics()
          .report(Code::top_k_too_large, arguments[2]->value->span, *k, without_marks(axis.name), context.describe_size(axis.size))
          .hint("k is at least 1 and at most the axis' size");
      return std::nullopt;
    }
    if (verdict == Verdict::depends) context.require(condition, arguments[2]->value->span);
  }
  const NodesFrom nodes_from(context, span_of(call));
  const NodeId where = build.top_k_index(along->x, along->axis, *k);
  build.graph()[where].type.dtype = index_dtype(context, axis.size);
  if (name == "top_k_index") return Value{where};
  const Type type = build.type(where);
  GatherAttr attr{along->axis, AxisList::range(type.rank()), AxisList::range(type.rank())};
  attr.table_map.set(along->axis, kNoAxis);
  return Value{build.gather(along->x, where, attr, type.axes)};
}

constexpr Builtin kAxisOps[] = {
    {"sum", call_reduction},
    {"mean", call_reduction},
    {"prod", call_reduction},
    {"var", call_reduction},
    {"any", call_reduction},
    {"all", call_reduction},
    {"logsumexp", call_reduction},
    {"argmax", call_arg_reduction},
    {"argmin", call_arg_reduction},
    {"softmax", call_softmax},
    {"log_softmax", call_softmax},
    {"cumsum", call_cumsum},
    {"top_k", call_top_k},
    {"top_k_index", call_top_k},
    {"cross_entropy", call_cross_entropy},
    {"iota", call_iota},
    {"one_hot", call_one_hot},
    {"concat", call_concat},
    {"stack", call_stack},
    {"pad", call_pad},
    {"dropout", call_dropout},
    {"normal", call_random},
    {"uniform", call_random},
};

}  // namespace

DType index_dtype(Context& context, const Poly& size) {
  const auto count = size.to_double(context.order_values());
  return count && *count > static_cast<double>(std::numeric_limits<int32_t>::max()) ? DType::i64 : DType::i32;
}

std::span<const Builtin> axis_builtins() { return kAxisOps; }

}  // namespace einc
