// SPDX-License-Identifier: Apache-2.0
// cross_entropy(logits, targets, axis): what may be wrong with its targets, and the loss of each.
#include <fmt/format.h>

#include <algorithm>

#include "compiler/elaborate/align.h"
#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/axis_ops.h"
#include "compiler/elaborate/indexing.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/reductions.h"
#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

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
  const auto alike = same_size(targets.axes, rows, {});
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

// cross_entropy(targets, logits, axis): integers before a tensor that has the axis.
bool refuse_exchanged(Context& context, const std::vector<const ast::Argument*>& arguments) {
  const auto* axis = arguments[2]->value->as<ast::NameRef>();
  const auto* first = arguments[0]->value->as<ast::NameRef>();
  if (axis == nullptr || first == nullptr) return false;
  const auto targets = context.evaluate_tensor(*arguments[0]->value);
  if (!targets || !is_integer(context.build().type(*targets).dtype)) return false;
  const Type type = context.build().type(*targets);
  if (std::any_of(type.axes.begin(), type.axes.end(), [&](const Axis& a) { return a.name == axis->name; })) return false;
  context.diagnostics()
      .report(Code::no_such_axis, arguments[0]->value->span, context.show(type), axis->name)
      .hint("the logits come first: cross_entropy({}, {}, {})", context.quote(arguments[1]->value->span),
            context.quote(arguments[0]->value->span), axis->name);
  return true;
}

struct Options {
  std::optional<int64_t> ignored;  // a target that is no class and has no loss
  double smoothing = 0;
};

std::optional<Options> read_options(Context& context, const ast::Call& call) {
  Options options;
  bool fine = true;
  if (const ast::Argument* ignore = find_argument(call, "ignore")) {
    const auto number = constant_argument(context, *ignore, "the target to ignore");
    fine = number.has_value();
    if (number) options.ignored = static_cast<int64_t>(*number);
    if (number && static_cast<double>(*options.ignored) != *number) {
      context.diagnostics().report(Code::index_not_integer, ignore->value->span, fmt::format("{}", *number));
      fine = false;
    }
  }
  if (const ast::Argument* share = find_argument(call, "smoothing")) {
    const auto number = constant_argument(context, *share, "the smoothing of labels");
    fine = fine && number;
    options.smoothing = number.value_or(0);
    if (number && !(*number >= 0 && *number < 1)) {
      context.diagnostics().report(Code::smoothing, share->value->span, *number);
      fine = false;
    }
  }
  return fine ? std::optional(options) : std::nullopt;
}

}  // namespace

// -log softmax(logits, axis) at the target: logsumexp(logits, axis) - logits[axis = targets]. With smoothing s the target has the
// probability 1 - s + s/n and each other class s/n, so that it is logsumexp - ((1 - s) logits[target] + s mean(logits)).
std::optional<Value> call_cross_entropy(Context& context, const ast::Call& call) {
  const std::string_view usage = "`cross_entropy(logits, targets, axis)`";
  if (!check_arguments(context, call, 3, 3, usage, {"ignore", "smoothing"})) return std::nullopt;
  const auto arguments = positional_arguments(call);
  if (refuse_exchanged(context, arguments)) return std::nullopt;
  const auto along = read_along_axis(context, arguments, 2);
  const auto given = context.evaluate_tensor(*arguments[1]->value);
  const auto options = read_options(context, call);
  if (!along || !given || !options) return std::nullopt;
  const Span target_span = arguments[1]->value->span;
  const Type of_logits = context.build().type(along->x), of_targets = context.build().type(*given);
  if (!refuse_one_hot(context, of_logits, along->axis, of_targets, target_span)) return std::nullopt;
  if (!refuse_crossed(context, of_logits, along->axis, of_targets, arguments[0]->value->span, target_span)) return std::nullopt;
  if (!check_ids(context, *given, target_span)) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const NodeId logits = widen(build, along->x);
  const Type type = build.type(logits);
  NodeId targets = *given, ignored;
  if (options->ignored) {
    if (bytes_of(of_targets.dtype) < 4) targets = convert(build, targets, DType::i32);  // which holds -100
    const DType dtype = build.type(targets).dtype;
    ignored = build.map(MapFn::equal, {targets, build.constant(Poly(*options->ignored), dtype)});
    targets = build.map(MapFn::where, {ignored, build.constant(Poly(0), dtype), targets});
  }
  const int indexed[] = {along->axis};
  const auto plan = plan_gather(context, type, along->axis, of_targets, indexed, target_span);
  if (!plan) return std::nullopt;
  // A row's values have the table's axes but the indexed one: the gather knows where each went.
  AxisList of_row;
  for (int i = 0; i < type.rank(); ++i)
    if (i != along->axis) of_row.push_back(plan->attr.table_map[i]);
  const AxisList whole = AxisList::range(static_cast<int>(plan->out_axes.size()));
  const auto map = [&](MapFn fn, std::initializer_list<NodeId> operands, std::initializer_list<AxisList> maps) {
    return build.map(fn, {operands.begin(), operands.size()}, {maps.begin(), maps.size()}, plan->out_axes, type.dtype);
  };
  NodeId picked = build.gather(logits, targets, plan->attr, plan->out_axes);
  if (options->smoothing > 0) {
    const auto scaled = [&](NodeId x, double by) { return build.map(MapFn::mul, {x, build.constant(by, type.dtype)}); };
    const NodeId mean = build_reduction(build, Reduction::mean, logits, {along->axis});
    picked = map(MapFn::add, {scaled(picked, 1 - options->smoothing), scaled(mean, options->smoothing)}, {whole, of_row});
  }
  NodeId loss = map(MapFn::sub, {build.logsumexp(logits, {along->axis}), picked}, {of_row, whole});
  if (ignored.valid()) loss = map(MapFn::where, {ignored, build.constant(Poly(0), type.dtype), loss}, {plan->attr.ids_map, {}, whole});
  return Value{narrow(build, loss, of_logits.dtype)};
}

}  // namespace einc
