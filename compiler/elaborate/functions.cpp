// SPDX-License-Identifier: Apache-2.0
// Calls of fns: arguments to parameters, the caller's axes to the signature's names, the body inlined, and the names given
// back. See scope.h for the rule that keeps axes apart.
#include <algorithm>
#include <utility>

#include "compiler/elaborate/elaborator.h"
#include "compiler/elaborate/show.h"
#include "compiler/elaborate/suggest.h"
#include "compiler/symbolic/order.h"

namespace einc {

std::optional<FnRef> Elaborator::find_fn(Name name, Span span) {
  if (schedules_)
    if (const auto found = schedules_->fns.find(name); found != schedules_->fns.end()) return found->second;
  const SourceUnit& unit = *frame().unit;
  if (const auto own = unit.fns.find(name); own != unit.fns.end()) return own->second;
  const auto imported = unit.imported.find(name);
  if (imported == unit.imported.end()) return std::nullopt;
  const std::vector<FnRef>& candidates = imported->second;
  if (candidates.size() == 1) return candidates[0];
  auto report = diagnostics_.report(Code::ambiguous_fn, span, name);
  for (const FnRef& candidate : candidates) report.label(candidate.fn->name.span, "one is here");
  report.hint("define `{}` in this file, or import one of the files only", name);
  return FnRef{};
}

std::string Elaborator::instance_name(const ast::Call& call) const {
  std::string name = (call.instance ? call.instance.name : call.callee.name).str();
  for (const int64_t index : frame().loop_indices) name += "." + std::to_string(index);
  return name;
}

std::optional<Value> Elaborator::call_fn(FnRef ref, const ast::Call& call, Span span) {
  std::vector<const ast::Argument*> given;
  for (const ast::Argument& argument : call.arguments) given.push_back(&argument);
  auto arguments = bind_arguments(ref, call.callee, given, std::vector<BoundArgument>(ref.fn->params.size()));
  if (!arguments) return std::nullopt;
  const std::string path = join_path(frame().path, instance_name(call));
  if (!check_path_length(path, span)) return std::nullopt;
  return instantiate(ref, std::move(*arguments), Instance{path, schedules_ ? std::string() : path}, span);
}

// Of an optimizer p, g and t are einc's to give, and the settings that all have are the user's, too.
std::vector<std::string> Elaborator::parameter_names(FnRef ref) const {
  std::vector<std::string> names;
  for (const ast::FnParam& param : ref.fn->params) names.push_back(param.name.name.str());
  const bool bundled = schedules_ && ref.unit == schedules_;
  if (bundled) std::erase_if(names, [](const std::string& name) { return name == "p" || name == "g" || name == "t"; });
  if (bundled && ref.fn->params[0].name.name == Name("p")) names.insert(names.end(), {"weight_decay", "clip_norm", "decay_all"});
  return names;
}

void Elaborator::suggest_parameter(Diagnostics::Builder& report, FnRef ref, const ast::Argument& argument) const {
  const std::vector<std::string> names = parameter_names(ref);
  const bool bundled = schedules_ && ref.unit == schedules_;
  const std::string& name = argument.name.name.str();
  const auto longer = std::ranges::find_if(names, [&](const std::string& full) { return name.size() > 2 && full.starts_with(name); });
  const std::string with_bias = ref.fn->name.name.str() + "_bias";
  if (bundled && (name == "learning_rate" || name == "rate")) {
    report.did_you_mean(argument.name.span, "lr");
  } else if (name == "bias" && ref.unit->bundled && ref.unit->fns.contains(Name(with_bias))) {
    report.hint("it has no bias; `{}` has one", with_bias);
  } else if (longer != names.end()) {  // eps, epsilon
    report.did_you_mean(argument.name.span, *longer);
  } else if (const auto near = near_name(name, names)) {
    report.did_you_mean(argument.name.span, *near);
  } else if (!names.empty()) {
    report.hint("it takes {}", fmt::to_string(fmt::join(names, ", ")));
  }
  if (!bundled) report.label(ref.fn->name.span, "the fn");
}

// The parameter that an argument is for; params.size() when there is none. A name that is wrong is reported.
size_t Elaborator::parameter_of(FnRef ref, const ast::Argument& argument, const std::vector<BoundArgument>& arguments, size_t& next) {
  using State = BoundArgument::State;
  const auto& params = ref.fn->params;
  if (!argument.name) {
    while (next < params.size() && arguments[next].state != State::missing) ++next;
    return next;
  }
  size_t index = 0;
  while (index < params.size() && params[index].name.name != argument.name.name) ++index;
  if (index == params.size()) {
    auto report = diagnostics_.report(Code::unknown_argument, argument.name.span, ref.fn->name.name, argument.name.name);
    suggest_parameter(report, ref, argument);
  } else if (arguments[index].state != State::missing) {
    diagnostics_.report(Code::duplicate_argument, argument.name.span, argument.name.name);
    index = params.size();
  }
  return index;
}

// Evaluates what the call gives and puts it in the parameters' order; some places may be filled already.
std::optional<std::vector<BoundArgument>> Elaborator::bind_arguments(FnRef ref, const ast::Identifier& callee,
                                                                     std::span<const ast::Argument* const> given,
                                                                     std::vector<BoundArgument> arguments) {
  using State = BoundArgument::State;
  const auto& params = ref.fn->params;
  if (schedules_ && step_ && !params.empty() && params[0].name.name == Name("t")) arguments[0] = {Value{*step_}, callee.span, State::given};
  const size_t wanted = static_cast<size_t>(
      std::count_if(arguments.begin(), arguments.end(), [](const BoundArgument& a) { return a.state == State::missing; }));
  size_t next = 0;
  bool whole = true, matched = true;
  const ast::Argument* superfluous = nullptr;
  for (const ast::Argument* argument : given) {
    const size_t index = parameter_of(ref, *argument, arguments, next);
    if (!argument->name && index == params.size() && !superfluous) superfluous = argument;
    if (index < params.size() && is_size_for_real(ref, params[index], *argument)) {
      diagnostics_.report(Code::too_many_arguments, argument->span, ref.fn->name.name, counted(index, "argument"), given.size())
          .label(params[index].span, "a number")
          .hint("a layer works along the last axis, without being told its size; `{}` is given by its name", params[index].name.name);
      matched = false;
    }
    auto value = evaluate(*argument->value);
    matched = matched && index < params.size();
    whole = whole && value && matched;
    if (index < params.size()) arguments[index] = {std::move(value), argument->value->span, State::given, axis_named(*argument->value)};
  }
  std::vector<std::string> usage = parameter_names(ref);
  for (std::string& name : usage)
    for (const ast::FnParam& param : params)
      if (param.default_value && param.name.name == Name(name)) name += " = ...";
  const auto signature = [&] { return fmt::format("write {}({})", ref.fn->name.name.str(), fmt::join(usage, ", ")); };
  if (superfluous)
    diagnostics_.report(Code::too_many_arguments, superfluous->span, ref.fn->name.name, counted(wanted, "argument"), given.size())
        .label(ref.fn->name.span, "the fn")
        .hint("{}", signature());
  for (size_t i = 0; i < params.size() && matched; ++i) {
    if (arguments[i].state != State::missing || params[i].default_value) continue;
    diagnostics_.report(Code::missing_argument, callee.span, ref.fn->name.name, params[i].name.name)
        .label(params[i].span, "declared here")
        .hint("{}", signature());
    whole = false;
  }
  if (whole && ref.unit == schedules_) whole = check_settings(*ref.fn, arguments);
  return whole ? std::optional(std::move(arguments)) : std::nullopt;
}

// `layer_norm(x, embed)`, as in PyTorch: in a bundled fn, a dim in the place of a small number such as epsilon.
bool Elaborator::is_size_for_real(FnRef ref, const ast::FnParam& param, const ast::Argument& argument) const {
  const auto* number = param.default_value ? param.default_value->as<ast::Number>() : nullptr;
  if (!ref.unit->bundled || argument.name || !number || number->kind != ast::NumberKind::real || number->value >= 1) return false;
  return !axis_named(*argument.value).empty();
}

// The dim or axis that an argument names, alone; empty for any other size and for what is none.
Name Elaborator::axis_named(const ast::Expr& argument) const {
  const auto* ref = argument.as<ast::NameRef>();
  if (!ref || !visible_size(ref->name)) return Name();
  return frame().scope->find(ref->name) && !frame().is_axis_parameter(ref->name) ? Name() : ref->name;
}

bool Elaborator::check_recursion(const ast::Fn& fn, Span span) {
  const Frame* first = nullptr;
  for (const Frame* at = frame_; at; at = at->caller)
    if (at->fn == &fn) first = at;
  if (first) {
    std::string cycle = fn.name.name.str();
    std::vector<const Frame*> chain;
    for (const Frame* at = frame_; at && at != first->caller; at = at->caller) chain.push_back(at);
    auto report = diagnostics_.report(Code::recursion, span, fn.name.name);
    std::reverse(chain.begin(), chain.end());
    for (size_t i = 1; i < chain.size() && i < 8; ++i)
      report.label(chain[i]->call, "`{}` calls `{}` here", chain[i - 1]->fn->name.name, chain[i]->fn->name.name);
    report.hint("calls are inlined, so a fn cannot reach itself; use `for`");
    return false;
  }
  if (call_depth_ < kMaxCallDepth && calls_ < kMaxCalls) return true;
  if (call_depth_ >= kMaxCallDepth)
    diagnostics_.report(Code::calls_too_deep, span, kMaxCallDepth);
  else
    diagnostics_.report(Code::too_many_calls, span, kMaxCalls).hint("every call is inlined: shorten a loop, or call fewer fns inside fns");
  exhausted_ = true;
  return false;
}

std::optional<Value> Elaborator::instantiate(FnRef ref, std::vector<BoundArgument> arguments, const Instance& instance, Span span) {
  if (!check_recursion(*ref.fn, span)) return std::nullopt;
  ++calls_;
  ++call_depth_;
  Frame callee;
  callee.caller = frame_;
  callee.unit = ref.unit;
  callee.fn = ref.fn;
  callee.call = span;
  callee.path = instance.path;
  for (const BoundArgument& argument : arguments)
    callee.arguments.push_back(argument.state == BoundArgument::State::given ? argument.span : Span{});
  const Origin saved = build_.origin;
  const SourceUnit* const schedules = std::exchange(schedules_, nullptr);
  frame_ = &callee;
  build_.origin.module = instance.module;
  std::optional<Value> result;
  if (bind_parameters(callee, arguments)) {
    called_.insert(ref.fn);
    const size_t said = diagnostics_.list().size();
    const uint32_t first_node = graph_.size();
    execute(ref.fn->body);
    result = callee.returned ? callee.result : std::optional(Value{Tuple{}});
    if (result && ref.fn->gradient) result = with_gradient_block(callee, arguments, first_node);
    explain_errors(said, callee, arguments);
  }
  frame_ = callee.caller;
  if (result) {
    build_.origin.location = saved.location;
    result = give_back(callee, *result);
  }
  build_.origin = saved;
  schedules_ = schedules;
  --call_depth_;
  return exhausted_ ? std::nullopt : result;
}

// A size may be used as an axis by the parameter's name. The caller calls that axis as the argument did, if it was a bare name.
void Elaborator::bind_axis_parameter(Frame& callee, const ast::FnParam& param, const BoundArgument& argument) {
  const auto* number = argument.value ? std::get_if<Number>(&argument.value->data) : nullptr;
  const Poly* size = number && number->integer ? std::get_if<Poly>(&number->value) : nullptr;
  if (param.type || !size || (size->is_constant() && !provably_at_least(*size, Poly(1)))) return;
  const Name name = param.name.name;
  callee.signature.push_back(SignatureAxis{name, Axis{argument.axis.empty() ? name : argument.axis, *size}, argument.span, true});
}

// Sizes first, then typed parameters: they say which names are the signature's.
bool Elaborator::bind_parameters(Frame& callee, std::vector<BoundArgument>& arguments) {
  const auto& params = callee.fn->params;
  bool whole = true;
  for (size_t i = 0; i < params.size(); ++i) bind_axis_parameter(callee, params[i], arguments[i]);
  for (size_t i = 0; i < params.size(); ++i) {
    BoundArgument& argument = arguments[i];
    if (!params[i].type || !argument.value) continue;
    argument.value = bind_typed(callee, params[i], *argument.value, argument.span);
    whole = whole && argument.value;
  }
  for (size_t i = 0; i < params.size() && whole; ++i) {
    BoundArgument& argument = arguments[i];
    if (argument.state == BoundArgument::State::unknown) continue;
    if (!argument.value) {
      argument.value = evaluate(*params[i].default_value);
      argument.span = params[i].span;
      argument.axis = axis_named(*params[i].default_value);
      if (const SignatureAxis* bound = callee.find_axis(argument.axis)) argument.axis = bound->caller.name;
      bind_axis_parameter(callee, params[i], argument);
      if (argument.value && params[i].type) argument.value = bind_typed(callee, params[i], *argument.value, argument.span);
    } else if (!params[i].type) {
      argument.value = take_in(callee, *argument.value);
    }
    whole = argument.value.has_value();
  }
  for (size_t i = 0; i < params.size() && whole; ++i) {
    const auto [place, fresh] =
        callee.outermost.bindings.emplace(params[i].name.name, Binding{arguments[i].value, BindingKind::argument, params[i].name.span});
    if (!fresh)
      diagnostics_.report(Code::redefined, params[i].name.span, params[i].name.name, "a parameter").label(place->second.span, "first here");
  }
  return whole;
}

// An argument without a type. An axis that the caller calls like one bound by the signature is that axis; dims of the fn's
// file keep their names; all others are foreign.
Value Elaborator::take_in(const Frame& callee, const Value& value) {
  if (const auto* tuple = std::get_if<Tuple>(&value.data)) {
    Tuple taken;
    for (const Value& item : tuple->items) taken.items.push_back(take_in(callee, item));
    return Value{std::move(taken)};
  }
  const auto* node = std::get_if<NodeId>(&value.data);
  if (!node) return value;
  std::vector<Axis> axes = build_.type(*node).axes;
  for (Axis& axis : axes) {
    const auto bound = std::find_if(callee.signature.begin(), callee.signature.end(),
                                    [&](const SignatureAxis& s) { return !s.parameter && axis.is_named() && s.caller == axis; });
    if (bound != callee.signature.end()) {
      axis.name = bound->name;
      continue;
    }
    const bool own = callee.unit->dims.contains(axis.name) && graph_.dims.find(axis.name) && graph_.dims.size(axis.name) == axis.size;
    if (!own || callee.find_axis(axis.name)) axis.name = mark_foreign(axis.name);
  }
  return Value{build_.rename(*node, std::move(axes))};
}

std::optional<Value> Elaborator::bind_typed(Frame& callee, const ast::FnParam& param, const Value& value, Span span) {
  const ast::Type& written = *param.type;
  if (std::holds_alternative<Tuple>(value.data)) {
    report_several(span, std::get<Tuple>(value.data).items.size());
    return std::nullopt;
  }
  const auto tensor = to_tensor(*this, value, written.dtype.value_or(DType::real), span);
  if (!tensor) return std::nullopt;
  NodeId node = *tensor;
  const Type found = build_.type(node);
  int named = 0;
  bool ellipsis = false;
  for (const ast::Axis& axis : written.axes) {
    named += axis.kind != ast::AxisKind::ellipsis;
    ellipsis = ellipsis || axis.kind == ast::AxisKind::ellipsis;
  }
  if (ellipsis ? named > found.rank() : named != found.rank()) {
    diagnostics_
        .report(Code::argument_rank, span, param.name.name, callee.fn->name.name, ellipsis ? "at least " : "",
                counted(static_cast<size_t>(named), "axis"), show(found))
        .label(param.span, "the parameter");
    return std::nullopt;
  }
  std::vector<NamedPlace> places;
  for (int place = 0; const ast::Axis& axis : written.axes) {
    const Name name = axis.name.name;
    const bool own = callee.unit->dims.contains(name) && !callee.is_axis_parameter(name);
    if (!name.empty()) places.push_back({name, place, axis.span, !own});
    place += axis.kind == ast::AxisKind::ellipsis ? found.rank() - named : 1;
  }
  if (!check_places(found, places, "parameter `" + param.name.name.str() + "`", span, true)) return std::nullopt;
  std::vector<Axis> axes = found.axes;
  size_t next = 0;
  bool whole = true;
  for (const ast::Axis& axis : written.axes) {
    if (axis.kind != ast::AxisKind::ellipsis) {
      whole = bind_axis(callee, param, axis, axes[next], span) && whole;
      ++next;
      continue;
    }
    std::vector<Axis> stood_for;
    for (int i = named; i < found.rank(); ++i, ++next) {
      axes[next].name = mark_foreign(axes[next].name);
      stood_for.push_back(axes[next]);
    }
    if (!callee.ellipsis) callee.ellipsis = std::move(stood_for);
  }
  if (!whole) return std::nullopt;
  if (written.dtype && *written.dtype != found.dtype) {
    const auto cast = conform_dtype(node, *written.dtype, span, graph_.size());
    if (!cast) return std::nullopt;
    node = *cast;
  }
  return Value{build_.rename(node, std::move(axes))};
}

// One axis of a signature against the argument's: sets its name inside the fn.
bool Elaborator::bind_axis(Frame& callee, const ast::FnParam& param, const ast::Axis& axis, Axis& given, Span span) {
  std::optional<Poly> expected;
  Span origin = axis.span;
  const Name name = axis.kind == ast::AxisKind::number ? Name() : axis.name.name;
  const Axis found = given;
  if (axis.kind == ast::AxisKind::named) {
    if (const SignatureAxis* bound = callee.find_axis(name)) {
      expected = bound->caller.size;
      origin = bound->argument;
    } else if (callee.unit->dims.contains(name) && graph_.dims.find(name)) {
      expected = graph_.dims.size(name);
    }
  } else {
    expected = axis_size(*axis.size);
    if (!expected) return false;
  }
  if (expected && !(*expected == found.size)) {
    auto report =
        diagnostics_.report(Code::argument_size, span, show_name(found), describe_size(found.size),
                            name.empty() ? "the parameter's axis" : "`" + name.str() + "`", describe_size(*expected), param.name.name);
    report.label(axis.span, "the parameter's axis");
    if (!(origin == axis.span)) report.label(origin, "`{}` is {} by this argument", name, show_size(*expected));
    return false;
  }
  if (name.empty()) {
    given.name = mark_foreign(given.name);
    return true;
  }
  given.name = name;
  if (!callee.find_axis(name)) callee.signature.push_back(SignatureAxis{name, found, span});
  return true;
}

// The result in the caller's names.
Value Elaborator::give_back(const Frame& callee, const Value& value) {
  if (const auto* tuple = std::get_if<Tuple>(&value.data)) {
    Tuple given;
    for (const Value& item : tuple->items) given.items.push_back(give_back(callee, item));
    return Value{std::move(given)};
  }
  const auto* node = std::get_if<NodeId>(&value.data);
  if (!node) return value;
  std::vector<Axis> axes = build_.type(*node).axes;
  for (Axis& axis : axes) {
    if (is_foreign(axis.name))
      axis.name = unmark(axis.name);
    else if (const SignatureAxis* bound = callee.find_axis(axis.name))
      axis.name = bound->caller.name;
  }
  return Value{build_.rename(*node, std::move(axes))};
}

}  // namespace einc
