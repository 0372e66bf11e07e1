// SPDX-License-Identifier: Apache-2.0
// The arguments of optimizers and schedules. One of the bundled ones has the form of its default, a number or a tuple of as
// many, and lies where its formula means something: what does not is reported at the user's argument, not inside the library.
#include <cmath>

#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/show.h"
#include "compiler/elaborate/training.h"

namespace einc {
namespace {

struct Range {
  std::string_view setting, text;
  bool (*holds)(double);
};
// As f32 holds them, which is what an optimizer computes with.
bool is_finite(double x) { return std::isfinite(static_cast<float>(x)); }
bool is_positive(double x) { return is_finite(x) && static_cast<float>(x) > 0; }
bool is_not_negative(double x) { return is_finite(x) && x >= 0; }
bool is_fraction(double x) { return x >= 0 && x < 1; }
constexpr Range kRanges[] = {
    {"lr", ", finite and 0 or more", is_not_negative},
    {"floor", ", finite and 0 or more", is_not_negative},
    {"betas", " from 0 to below 1", is_fraction},
    {"momentum", " from 0 to below 1", is_fraction},
    {"alpha", " from 0 to below 1", is_fraction},
    {"eps", ", finite and above 0", is_positive},
    {"lr_decay", ", finite and 0 or more", is_not_negative},
    {"warmup", ", finite and 0 or more", is_not_negative},
    {"total", ", finite and above 0", is_positive},
    {"weight_decay", ", finite and 0 or more", is_not_negative},
    {"clip_norm", " above 0", [](double x) { return static_cast<float>(x) > 0; }},
};

const Range* range_of(Name setting) {
  for (const Range& range : kRanges)
    if (range.setting == setting.str()) return &range;
  return nullptr;
}

}  // namespace

// The number, dims having the values in use; nullopt when one of them has none yet.
std::optional<double> Elaborator::setting_value(const Number& number) const {
  if (const auto constant = constant_value(number)) return constant;
  return std::get<Poly>(number.value).to_double(values_);
}

// A number that the range holds, or a scalar that is known when running.
bool Elaborator::is_setting(Name setting, const Value& value) const {
  if (const Number* number = std::get_if<Number>(&value.data)) {
    const Range* range = range_of(setting);
    const auto constant = setting_value(*number);
    return !range || !constant || range->holds(*constant);
  }
  const NodeId* node = std::get_if<NodeId>(&value.data);
  return node && graph_.type(*node).rank() == 0 && graph_.type(*node).dtype != DType::boolean;
}

// `true` or `false`.
std::optional<bool> Elaborator::as_flag(const Value& value) const {
  const NodeId* node = std::get_if<NodeId>(&value.data);
  if (!node || graph_[*node].op != Op::constant || graph_.type(*node).dtype != DType::boolean) return std::nullopt;
  return graph_[*node].as<ConstantAttr>().value != ScalarValue(Poly(0));
}

std::string Elaborator::describe_value(const Value& value) const {
  if (const Number* number = std::get_if<Number>(&value.data)) return einc::describe(*number);
  if (const NodeId* node = std::get_if<NodeId>(&value.data)) return show(graph_.type(*node));
  return counted(std::get<Tuple>(value.data).items.size(), "value");
}

bool Elaborator::check_setting(Name setting, const ast::Expr* standard, const Value& value, Span span) {
  const Range* range = range_of(setting);
  const std::string suffix(range ? range->text : "");
  if (standard && standard->kind() == ast::ExprKind::boolean) {
    if (as_flag(value)) return true;
    diagnostics_.report(Code::bad_setting, span, setting, "true or false", describe_value(value));
    return false;
  }
  const auto* several = standard ? standard->as<ast::Tuple>() : nullptr;
  if (!several) {
    if (is_setting(setting, value)) return true;
    diagnostics_.report(Code::bad_setting, span, setting, "a number" + suffix, describe_value(value));
    return false;
  }
  const size_t count = several->items.size();
  const auto* tuple = std::get_if<Tuple>(&value.data);
  const auto report = [&](std::string_view found) {
    diagnostics_.report(Code::bad_setting, span, setting, counted(count, "number") + suffix, found)
        .hint("its default is {}", sources_.text(standard->span));
  };
  if (!tuple || tuple->items.size() != count) {
    report(describe_value(value));
    return false;
  }
  for (const Value& item : tuple->items) {
    if (is_setting(setting, item)) continue;
    report(describe_value(item));
    return false;
  }
  return true;
}

bool Elaborator::check_settings(const ast::Fn& fn, const std::vector<BoundArgument>& arguments) {
  bool fine = true;
  for (size_t i = 0; i < fn.params.size(); ++i) {
    const ast::FnParam& param = fn.params[i];
    if (!param.type && arguments[i].value)
      fine = check_setting(param.name.name, param.default_value.get(), *arguments[i].value, arguments[i].span) && fine;
  }
  return fine && check_warm_up(fn, arguments);
}

// A schedule that is over before its warm-up is.
bool Elaborator::check_warm_up(const ast::Fn& fn, const std::vector<BoundArgument>& arguments) {
  std::optional<double> warm_up, total;
  Span span;
  for (size_t i = 0; i < fn.params.size(); ++i) {
    const auto* number = arguments[i].value ? std::get_if<Number>(&arguments[i].value->data) : nullptr;
    if (!number) continue;
    if (fn.params[i].name.name == Name("total")) total = setting_value(*number);
    if (fn.params[i].name.name != Name("warmup")) continue;
    warm_up = setting_value(*number);
    span = arguments[i].span;
  }
  if (!warm_up || !total || *warm_up <= *total) return true;
  diagnostics_.report(Code::bad_setting, span, "warmup", fmt::format("a number of steps up to total, {}", *total),
                      fmt::format("{}", *warm_up));
  return false;
}

// ---- a group's settings

// The optimizer's own arguments in its parameters' order, and the settings that every optimizer has.
bool Training::read_settings(const ast::ParamGroup& group, const FnRef& optimizer, Settings& settings) {
  using State = BoundArgument::State;
  std::vector<const ast::Argument*> own;
  bool whole = true;
  settings.decoupled = optimizer.unit == library_ && group.optimizer.name == Name("adamw");
  if (settings.decoupled) settings.weight_decay = Value{Number{0.01, false}};
  const SourceUnit* const saved = e_.schedules_;
  e_.schedules_ = library_;
  e_.step_ = step_;
  for (const ast::Argument& argument : group.arguments) {
    const Name name = argument.name.name;
    if (rate_ && name == Name("lr")) continue;
    const auto* word = argument.name ? nullptr : argument.value->as<ast::NameRef>();  // PyTorch's Adam(params, lr = 1e-3)
    if (word && (word->name == Name("params") || word->name == Name("parameters") || word->name == Name("model"))) {
      e_.diagnostics_.report(Code::unknown_argument, argument.span, group.optimizer.name, word->name)
          .hint("all params are trained; `minimize loss over \"h.*\" using ...` chooses some");
      whole = false;
      continue;
    }
    const bool parameter =
        std::any_of(optimizer.fn->params.begin(), optimizer.fn->params.end(), [&](const ast::FnParam& p) { return p.name.name == name; });
    if (parameter || (name != Name("weight_decay") && name != Name("clip_norm") && name != Name("decay_all"))) {
      own.push_back(&argument);
      continue;
    }
    auto value = e_.evaluate(*argument.value);
    if (name == Name("decay_all")) {
      const auto flag = value ? e_.as_flag(*value) : std::nullopt;
      if (value && !flag) e_.diagnostics_.report(Code::bad_setting, argument.value->span, name, "true or false", e_.describe_value(*value));
      settings.decay_all = flag.value_or(false);
      whole = whole && flag;
    } else {
      const bool fits = value && e_.check_setting(name, nullptr, *value, argument.value->span);
      whole = whole && fits;
      (name == Name("clip_norm") ? settings.clip_norm : settings.weight_decay) = std::move(value);
    }
  }
  if (rate_) own.push_back(rate_);
  std::vector<BoundArgument> arguments(optimizer.fn->params.size());
  for (size_t i = 0; i < 3; ++i) arguments[i] = {Value{step_}, group.optimizer.span, State::given};
  auto bound = e_.bind_arguments(optimizer, group.optimizer, own, std::move(arguments));
  e_.schedules_ = saved;
  e_.step_.reset();
  if (!bound || !whole) return false;
  settings.arguments = std::move(*bound);
  for (size_t i = 3; i < optimizer.fn->params.size(); ++i)
    if (optimizer.fn->params[i].name.name == Name("lr")) settings.lr = i;
  return true;
}

// The rate as a value: given, or the optimizer's default.
std::optional<Value> Training::learning_rate(const FnRef& optimizer, const Settings& settings) {
  const BoundArgument& given = settings.arguments[settings.lr];
  if (given.value) return given.value;
  return e_.evaluate(*optimizer.fn->params[settings.lr].default_value);
}

bool Training::is_zero(const Value& value) {
  const Number* number = std::get_if<Number>(&value.data);
  if (!number) return false;
  if (const auto* exact = std::get_if<Poly>(&number->value)) return exact->is_zero();
  return std::get<double>(number->value) == 0;
}

}  // namespace einc
