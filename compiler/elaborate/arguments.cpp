// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/arguments.h"

#include <fmt/format.h>

#include <algorithm>

#include "compiler/elaborate/align.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/scope.h"
#include "compiler/elaborate/show.h"
#include "dsl/near_name.h"

namespace einc {

NodesFrom::NodesFrom(Context& context, Span span) : build_(context.build()), previous_(build_.origin.location) {
  build_.origin.location = context.locate(span);
}
NodesFrom::~NodesFrom() { build_.origin.location = previous_; }

Span span_of(const ast::Call& call) {
  return call.arguments.empty() ? call.callee.span : join(call.callee.span, call.arguments.back().span);
}

namespace {

// `dim = 1`, `keepdim = True` and others of NumPy's and PyTorch's keywords.
struct ForeignKeyword {
  std::string_view name, hint;
};
constexpr ForeignKeyword kForeignKeywords[] = {
    {"axis", "an axis is given by its bare name"},
    {"correction", "var and std divide by n"},
    {"ddof", "var and std divide by n"},
    {"dim", "an axis is given by its bare name"},
    {"dtype", "cast the result: cast(x, f32)"},
    {"keepdim", "no axis need be kept: a result lines up with its operand by the names of its axes"},
    {"keepdims", "no axis need be kept: a result lines up with its operand by the names of its axes"},
    {"reduction", "it gives one loss per element, of which the mean is mean(...)"},
    {"unbiased", "var and std divide by n"},
};

void report_keyword(Context& context, const ast::Call& call, const ast::Argument& argument, std::string_view usage,
                    std::initializer_list<std::string_view> keywords) {
  auto report = context.diagnostics().report(Code::builtin_keyword, argument.name.span, call.callee.name, argument.name.name);
  const std::string& name = argument.name.name.str();
  if (const auto near = near_name(name, keywords)) {
    report.did_you_mean(argument.name.span, *near);
    return;
  }
  for (const ForeignKeyword& foreign : kForeignKeywords) {
    if (foreign.name != name) continue;
    const bool names_axis = name == "dim" || name == "axis";
    if (names_axis && usage.find("axis") == std::string_view::npos) break;  // it works along no axis
    report.hint("{}: write {}", foreign.hint, usage);
    const auto* axis = argument.value->as<ast::NameRef>();
    if (axis && names_axis) report.replace(argument.span, axis->name.str());
    return;
  }
  report.hint("write {}", usage);
}

}  // namespace

bool check_arguments(Context& context, const ast::Call& call, size_t least, size_t most, std::string_view usage,
                     std::initializer_list<std::string_view> keywords) {
  bool fine = true;
  size_t positional = 0;
  for (const ast::Argument& argument : call.arguments) {
    if (!argument.name) {
      ++positional;
    } else if (std::find(keywords.begin(), keywords.end(), argument.name.name.str()) == keywords.end()) {
      report_keyword(context, call, argument, usage, keywords);
      fine = false;
    }
  }
  if (fine && (positional < least || positional > most)) {
    const std::string wanted = most > 1000     ? fmt::format("{} or more arguments", least)
                               : least == most ? counted(least, "argument")
                                               : fmt::format("{} to {} arguments", least, most);
    context.diagnostics().report(Code::builtin_arguments, span_of(call), call.callee.name, wanted, positional).hint("write {}", usage);
    fine = false;
  }
  return fine;
}

const ast::Argument* find_argument(const ast::Call& call, std::string_view keyword) {
  for (const ast::Argument& argument : call.arguments)
    if (argument.name && argument.name.name.str() == keyword) return &argument;
  return nullptr;
}

std::vector<const ast::Argument*> positional_arguments(const ast::Call& call) {
  std::vector<const ast::Argument*> list;
  for (const ast::Argument& argument : call.arguments)
    if (!argument.name) list.push_back(&argument);
  return list;
}

std::optional<std::vector<Value>> evaluate_operands(Context& context, std::span<const ast::Argument* const> arguments) {
  std::vector<Value> values;
  for (const ast::Argument* argument : arguments)
    if (auto value = context.evaluate_operand(*argument->value)) values.push_back(std::move(*value));
  if (values.size() != arguments.size()) return std::nullopt;
  return values;
}

std::optional<int> find_axis(Context& context, const Type& type, Name name, Span span) {
  std::optional<int> found;
  for (int i = 0; i < type.rank(); ++i) {
    if (type.axis(i).name != name) continue;
    if (found) {
      context.diagnostics()
          .report(Code::axis_repeated, span, name, context.show(type))
          .hint("rename one of the two first: `y: {} = ...`", suggest_annotation(type.axes));
      return std::nullopt;
    }
    found = i;
  }
  if (found) return found;
  auto report = context.diagnostics().report(Code::no_such_axis, span, context.show(type), name);
  std::vector<std::string_view> names;
  for (const Axis& axis : type.axes)
    if (axis.is_named()) names.push_back(without_marks(axis.name).str());
  if (const auto near = near_name(name.str(), names))
    report.did_you_mean(span, *near);
  else if (context.is_value(name))
    report.hint("`{}` is a value, no axis: axes come last, and those here are {}", name, fmt::format("{}", fmt::join(names, ", ")));
  else if (names.empty())
    report.hint(type.axes.empty() ? "it is a scalar and has no axes" : "name its axes first: `y: {} = ...`", suggest_annotation(type.axes));
  else
    report.hint("its axes are {}", fmt::format("{}", fmt::join(names, ", ")));
  return std::nullopt;
}

std::optional<int> axis_argument(Context& context, const Type& type, const ast::Argument& argument) {
  if (const auto* name = argument.value->as<ast::NameRef>()) return find_axis(context, type, name->name, argument.value->span);
  if (argument.value->kind() != ast::ExprKind::invalid)
    context.diagnostics()
        .report(Code::axis_name_expected, argument.value->span)
        .hint("an axis is given by its bare name, as in `sum(x, seq)`");
  return std::nullopt;
}

std::optional<AxisList> axes_or_all(Context& context, const Type& type, std::span<const ast::Argument* const> arguments) {
  if (arguments.empty()) return AxisList::range(type.rank());
  AxisList axes;
  bool fine = true;
  for (const ast::Argument* argument : arguments) {
    const auto axis = axis_argument(context, type, *argument);
    fine = fine && axis;
    if (!axis) continue;
    if (axes.contains(*axis)) {
      context.diagnostics().report(Code::axis_twice, argument->span, without_marks(type.axis(*axis).name));
      fine = false;
    } else {
      axes.push_back(*axis);
    }
  }
  if (!fine) return std::nullopt;
  return axes;
}

std::optional<Axis> new_axis(Context& context, const ast::Argument& argument) {
  if (argument.name) {
    const auto size = context.evaluate_size(*argument.value);
    if (!size) return std::nullopt;
    const auto declared = context.declared_size(argument.name.name);
    if (declared && *declared != *size) {
      context.diagnostics()
          .report(Code::axis_has_declared_size, argument.span, argument.name.name, context.describe_size(*declared), size->str())
          .hint("give the new axis a name of its own");
      return std::nullopt;
    }
    if (!declared) context.introduce_local(argument.name.name, *size, argument.name.span);
    return Axis{argument.name.name, *size};
  }
  const auto* name = argument.value->as<ast::NameRef>();
  if (name == nullptr) {
    if (argument.value->kind() != ast::ExprKind::invalid)
      context.diagnostics()
          .report(Code::axis_name_expected, argument.value->span)
          .hint("name a dim or an axis, as in `iota(seq)`, or make a new axis with `name = size`");
    return std::nullopt;
  }
  if (const auto size = context.visible_size(name->name)) return Axis{name->name, *size};
  if (context.report_two_sizes(name->name, argument.value->span)) return std::nullopt;
  const std::vector<std::string> visible = context.visible_axis_names();
  auto report = context.diagnostics().report(Code::axis_without_size, argument.value->span, name->name);
  if (const auto near = near_name(name->name.str(), {visible.begin(), visible.end()}))
    report.did_you_mean(argument.value->span, *near);
  else
    report.hint("write `{} = size` to make the axis here", name->name);
  return std::nullopt;
}

std::optional<std::vector<Axis>> new_axes(Context& context, std::span<const ast::Argument* const> arguments) {
  std::vector<Axis> axes;
  bool fine = true;
  for (const ast::Argument* argument : arguments) {
    auto axis = new_axis(context, *argument);
    fine = fine && axis;
    if (!axis) continue;
    if (std::any_of(axes.begin(), axes.end(), [&](const Axis& other) { return other.name == axis->name; })) {
      context.diagnostics().report(Code::axis_twice, argument->span, without_marks(axis->name));
      fine = false;
    }
    axes.push_back(std::move(*axis));
  }
  return fine ? std::optional(std::move(axes)) : std::nullopt;
}

std::optional<double> constant_argument(Context& context, const ast::Argument& argument, std::string_view what) {
  const auto value = context.evaluate(*argument.value);
  if (!value) return std::nullopt;
  if (const Number* number = std::get_if<Number>(&value->data))
    if (const auto constant = constant_value(*number)) return constant;
  context.diagnostics().report(Code::number_expected, argument.value->span, what);
  return std::nullopt;
}

std::optional<bool> flag_argument(Context& context, const ast::Call& call, std::string_view keyword) {
  const ast::Argument* argument = find_argument(call, keyword);
  if (argument == nullptr) return false;
  if (const auto* flag = argument->value->as<ast::Boolean>()) return flag->value;
  if (argument->value->kind() != ast::ExprKind::invalid)
    context.diagnostics()
        .report(Code::flag_expected, argument->value->span, keyword)
        .hint("write `{} = true`", keyword)
        .replace(argument->value->span, "true");
  return std::nullopt;
}

bool check_rank(Context& context, size_t rank, Span span) {
  if (rank <= static_cast<size_t>(kMaxRank)) return true;
  context.diagnostics().report(Code::too_many_axes, span, rank, kMaxRank);
  return false;
}

}  // namespace einc
