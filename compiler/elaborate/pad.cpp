// SPDX-License-Identifier: Apache-2.0
// pad: a tensor extended along named axes by a number, or by its own elements.
#include <fmt/format.h>

#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/axis_ops.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

// An amount of padding: an integer formula that is not negative.
std::optional<Poly> pad_amount(Context& context, const ast::Expr& expr, Name axis) {
  const auto value = context.evaluate(expr);
  if (!value) return std::nullopt;
  const Poly* amount = integer_poly(*value);
  const Condition condition{ConditionKind::at_least, amount == nullptr ? Poly(-1) : *amount, Poly(0), -1, "an amount of padding"};
  if (decide(condition) == Verdict::never) {
    context.diagnostics().report(Code::pad_amounts, expr.span, axis).hint("write `{} = (1, 1)`", axis);
    return std::nullopt;
  }
  if (decide(condition) == Verdict::depends) context.require(condition, expr.span);
  return *amount;
}

enum class PadMode : uint8_t { constant, reflect, replicate, circular };

// The keyword `mode` with a string; an axis of that name has a pair.
std::optional<PadMode> read_mode(Context& context, const ast::Argument& argument) {
  const std::string& name = argument.value->as<ast::String>()->value;
  if (name == "constant") return PadMode::constant;
  if (name == "reflect") return PadMode::reflect;
  if (name == "replicate") return PadMode::replicate;
  if (name == "circular") return PadMode::circular;
  context.diagnostics()
      .report(Code::pad_mode, argument.value->span, name)
      .hint("the modes are \"constant\", \"reflect\", \"replicate\" and \"circular\"");
  return std::nullopt;
}

// Where `count` elements before or behind an axis of `size` come from: a slice of it, or one element again and again.
struct PadSource {
  Poly start;
  int64_t step;  // 0: one element
};

PadSource source_before(PadMode mode, const Poly& count, const Poly& size) {
  if (mode == PadMode::reflect) return {count, -1};
  return mode == PadMode::circular ? PadSource{size - count, 1} : PadSource{Poly(0), 0};
}
PadSource source_behind(PadMode mode, const Poly& size) {
  if (mode == PadMode::reflect) return {size - Poly(2), -1};
  return mode == PadMode::circular ? PadSource{Poly(0), 1} : PadSource{size - Poly(1), 0};
}

NodeId taken(Builder& build, NodeId x, int axis, const PadSource& source, const Poly& count) {
  if (source.step != 0) return build.slice(x, axis, source.start, count, source.step);
  std::vector<Axis> axes = build.type(x).axes;
  axes[static_cast<size_t>(axis)].size = count;
  const NodeId one = build.drop_unit(build.slice(x, axis, source.start, Poly(1), 1), axis);
  AxisList others;
  for (int i = 0; i < static_cast<int>(axes.size()); ++i)
    if (i != axis) others.push_back(i);
  return build.broadcast(one, others, std::move(axes));
}

// An amount that may be 0 for some dims would leave a piece without elements.
bool check_width(Context& context, PadMode mode, std::string_view name, const Poly& count, const Axis& axis, Span span) {
  const Poly most = mode == PadMode::reflect ? axis.size - Poly(1) : axis.size;
  std::vector<Condition> conditions{{ConditionKind::at_least, count, Poly(1), -1, "an amount of padding"}};
  if (mode != PadMode::replicate) conditions.push_back({ConditionKind::at_least, most, count, -1, "an amount of padding"});
  for (const Condition& condition : conditions) {
    const Verdict verdict = decide(condition);
    if (verdict == Verdict::never) {
      context.diagnostics()
          .report(Code::pad_too_wide, span, name, count, without_marks(axis.name), context.describe_size(axis.size))
          .hint("the most is {}", most);
      return false;
    }
    if (verdict == Verdict::depends) context.require(condition, span);
  }
  return true;
}

// The axis with elements of its own before and behind it.
std::optional<NodeId> pad_by_itself(Context& context, NodeId x, int axis, const ast::Argument& mode, PadMode kind, const Poly& before,
                                    const Poly& behind) {
  Builder& build = context.build();
  const Axis whole = build.type(x).axis(axis);
  const std::string_view name = mode.value->as<ast::String>()->value;
  std::vector<NodeId> parts;
  for (const Poly& count : {before, behind})
    if (!count.is_zero() && !check_width(context, kind, name, count, whole, mode.value->span)) return std::nullopt;
  if (!before.is_zero()) parts.push_back(taken(build, x, axis, source_before(kind, before, whole.size), before));
  parts.push_back(x);
  if (!behind.is_zero()) parts.push_back(taken(build, x, axis, source_behind(kind, whole.size), behind));
  return parts.size() == 1 ? x : build.concat(parts, axis);
}

}  // namespace

// pad(x, axis = (before, after), ..., value = 0), or with mode = "reflect", which takes the elements from the axis itself. Axes that are
// themselves called `value` or `mode` are told by their tuples.
std::optional<Value> call_pad(Context& context, const ast::Call& call) {
  const std::string usage = "`pad(x, axis = (before, after), value = 0)`";
  const auto arguments = positional_arguments(call);
  if (arguments.size() != 1) {
    context.diagnostics()
        .report(Code::builtin_arguments, span_of(call), "pad", "1 argument and the axes to pad", arguments.size())
        .hint("write {}", usage);
    return std::nullopt;
  }
  const auto x = context.evaluate_tensor(*arguments[0]->value);
  if (!x) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const Type type = build.type(*x);
  std::vector<Poly> before(type.axes.size()), after(type.axes.size());
  Number fill{Poly(0), true};
  PadMode mode = PadMode::constant;
  const ast::Argument* named_mode = nullptr;
  bool fine = true;
  for (const ast::Argument& argument : call.arguments) {
    if (!argument.name) continue;
    const auto* amounts = argument.value->as<ast::Tuple>();
    if (argument.name.name.str() == "value" && amounts == nullptr) {
      const auto value = context.evaluate(*argument.value);
      const Number* number = value ? std::get_if<Number>(&value->data) : nullptr;
      if (number != nullptr) fill = *number;
      if (value && number == nullptr) context.diagnostics().report(Code::number_expected, argument.value->span, "the value to pad with");
      fine = fine && number != nullptr;
      if (number != nullptr && !representable(*number, type.dtype)) {
        context.diagnostics().report(Code::number_not_in_dtype, argument.value->span, describe(*number), to_string(type.dtype));
        fine = false;
      }
      continue;
    }
    if (argument.name.name.str() == "mode" && argument.value->kind() == ast::ExprKind::string) {
      const auto read = read_mode(context, argument);
      fine = fine && read;
      mode = read.value_or(PadMode::constant), named_mode = &argument;
      continue;
    }
    const auto axis = find_axis(context, type, argument.name.name, argument.name.span);
    fine = fine && axis;
    if (amounts == nullptr || amounts->items.size() != 2) {
      if (argument.value->kind() != ast::ExprKind::invalid)
        context.diagnostics()
            .report(Code::pad_amounts, argument.value->span, argument.name.name)
            .hint("write `{} = (1, 1)`", argument.name.name);
      fine = false;
      continue;
    }
    const auto low = pad_amount(context, *amounts->items[0], argument.name.name);
    const auto high = pad_amount(context, *amounts->items[1], argument.name.name);
    fine = fine && low && high;
    if (!fine) continue;
    before[static_cast<size_t>(*axis)] = *low;
    after[static_cast<size_t>(*axis)] = *high;
  }
  if (!fine) return std::nullopt;
  if (mode == PadMode::constant) return Value{build.pad(*x, std::move(before), std::move(after), fill.value)};
  NodeId padded = *x;
  for (int i = 0; i < type.rank(); ++i) {
    const auto place = static_cast<size_t>(i);
    const auto wider = pad_by_itself(context, padded, i, *named_mode, mode, before[place], after[place]);
    if (!wider) return std::nullopt;
    padded = *wider;
  }
  return Value{padded};
}

}  // namespace einc
