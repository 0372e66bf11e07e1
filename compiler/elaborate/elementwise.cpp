// SPDX-License-Identifier: Apache-2.0
// Elementwise operators and functions: operands are aligned by axis name, numbers take the dtype of the tensors beside
// them, and one `map` node is built with explicit axis maps, so that nothing is broadcast in the graph.
#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <utility>

#include "compiler/elaborate/align.h"
#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/reductions.h"
#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

constexpr int64_t kLargestIntegerPower = 64;

void report_problem(Context& context, const AlignProblem& problem, std::span<const NodeId> nodes, std::span<const Span> spans, Span whole) {
  if (problem.fault == AlignFault::too_many_axes) {
    check_rank(context, static_cast<size_t>(problem.axis), whole);
    return;
  }
  const Type& type = context.build().type(nodes[problem.operand]);
  const Axis& axis = type.axis(problem.axis);
  const std::string text = context.show(type);
  switch (problem.fault) {
    case AlignFault::nameless:
      context.diagnostics()
          .report(Code::axis_nameless, spans[problem.operand], axis.name.empty() ? axis.size.str() : without_marks(axis.name).str(), text)
          .hint(axis.size.is_one() ? "an axis of size 1 does not broadcast: drop it, as in rearrange(x, \"a 1 -> a\")"
                                   : fmt::format("name its axes first: `y: {} = ...`", suggest_annotation(type.axes)));
      return;
    case AlignFault::repeated:
      context.diagnostics()
          .report(Code::axis_repeated, spans[problem.operand], without_marks(axis.name), text)
          .hint("rename one of the two first: `y: {} = ...`", suggest_annotation(type.axes));
      return;
    case AlignFault::sizes_differ: {
      const Type& other_type = context.build().type(nodes[problem.other_operand]);
      const Axis& other = other_type.axis(problem.other_axis);
      const Name name = without_marks(axis.name);
      auto report = context.diagnostics().report(Code::axis_sizes_differ, spans[problem.operand], name, context.describe_size(other.size),
                                                 context.describe_size(axis.size));
      report.label(spans[problem.other_operand], "{}", context.show(other_type));
      report.label(spans[problem.operand], "{}", text);
      if (axis.size.is_one() || other.size.is_one())
        report.hint("an axis of size 1 does not broadcast: drop it with `[{} = 0]`", name);
      else
        report.hint("if these are two different axes, rename one: `y: {} = ...`", suggest_annotation(type.axes, problem.axis));
      return;
    }
    case AlignFault::too_many_axes:
      return;
  }
}

bool check_bool(Context& context, MapFn fn, NodeId node, Span span) {
  const DType dtype = context.build().type(node).dtype;
  if (dtype == DType::boolean) return true;
  context.diagnostics().report(Code::bool_expected, span, spelling_of(fn), to_string(dtype)).hint("compare it with something: `x != 0`");
  return false;
}

// Arithmetic on bools counts true as 1, as Python does; max and min of bools stay bool.
MapFn bool_counterpart(MapFn fn) {
  if (fn == MapFn::maximum) return MapFn::logical_or;
  if (fn == MapFn::minimum) return MapFn::logical_and;
  return fn;
}

std::optional<NodeId> build_map(Context& context, MapFn fn, std::vector<NodeId> nodes, DType dtype, std::span<const Span> spans,
                                Span whole) {
  Builder& build = context.build();
  std::vector<std::vector<Axis>> axes;
  for (NodeId node : nodes) axes.push_back(build.type(node).axes);
  auto aligned = align(axes);
  if (const auto* problem = std::get_if<AlignProblem>(&aligned)) {
    report_problem(context, *problem, nodes, spans, whole);
    return std::nullopt;
  }
  Alignment& alignment = std::get<Alignment>(aligned);
  const NodeId result = build.map(fn, nodes, alignment.maps, std::move(alignment.axes), dtype);
  context.tree().add_op(build.graph(), fn, nodes, spans, whole, result);
  return result;
}

// x^n of an integer tensor stays an integer: repeated squaring.
NodeId integer_power(Builder& build, NodeId x, int64_t n) {
  if (n == 0) {
    const NodeId one = build.constant(Poly(1), build.type(x).dtype);
    return build.type(x).rank() == 0 ? one : build.broadcast(one, {}, std::vector<Axis>(build.type(x).axes));
  }
  std::optional<NodeId> result;
  for (NodeId square = x;; square = build.map(MapFn::mul, {square, square})) {
    if (n % 2 == 1) result = result ? build.map(MapFn::mul, {*result, square}) : square;
    n /= 2;
    if (n == 0) return *result;
  }
}

std::optional<int64_t> integer_exponent(const Value& base, const Value& exponent, const Builder& build) {
  const NodeId* x = std::get_if<NodeId>(&base.data);
  const Number* number = std::get_if<Number>(&exponent.data);
  if (x == nullptr || number == nullptr || !number->integer || !is_integer(build.type(*x).dtype)) return std::nullopt;
  const Poly* poly = std::get_if<Poly>(&number->value);
  const auto n = poly == nullptr ? std::nullopt : poly->as_integer();
  return n && *n >= 0 && *n <= kLargestIntegerPower ? n : std::nullopt;
}

std::optional<std::vector<Number>> all_numbers(std::span<const Value> operands) {
  std::vector<Number> numbers;
  for (const Value& value : operands) {
    const Number* number = std::get_if<Number>(&value.data);
    if (number == nullptr) return std::nullopt;
    numbers.push_back(*number);
  }
  return numbers;
}

// `//` and `%` have integers only: where a result is rounded is said.
void refuse_reals(Context& context, MapFn fn, std::span<const Value> operands, std::span<const Span> spans) {
  for (size_t k = 0; k < operands.size(); ++k) {
    const NodeId* node = std::get_if<NodeId>(&operands[k].data);
    const Number* number = std::get_if<Number>(&operands[k].data);
    if (number != nullptr ? number->integer : node == nullptr || !is_floating(context.build().type(*node).dtype)) continue;
    const std::string found = node != nullptr ? std::string(to_string(context.build().type(*node).dtype)) : describe(*number);
    const std::string a = context.quote(spans[0]), b = context.quote(spans[1]);
    context.diagnostics()
        .report(Code::integer_operands, spans[k], spelling_of(fn), found)
        .hint("of reals write {}",
              fn == MapFn::floor_div ? fmt::format("floor({} / {})", a, b) : fmt::format("{0} - {1} * floor({0} / {1})", a, b));
    return;
  }
}

bool divides_by_zero(MapFn fn, const Value& divisor) {
  const Number* number = std::get_if<Number>(&divisor.data);
  return divides_integers(fn) && number != nullptr && constant_value(*number) == 0.0;
}

// where(c, a, b): a and b promote together; c stands apart.
std::optional<Value> build_where(Context& context, std::span<const Value> operands, std::span<const Span> spans, Span whole) {
  Builder& build = context.build();
  const auto condition = promote_operands(context, operands.first(1), spans.first(1), DType::i32);
  const auto branches = promote_operands(context, operands.subspan(1), spans.subspan(1), DType::i32);
  if (!condition || !branches || !check_bool(context, MapFn::where, condition->nodes[0], spans[0])) return std::nullopt;
  std::vector<NodeId> nodes{condition->nodes[0]};
  for (NodeId node : branches->nodes) nodes.push_back(build.type(node).rank() == 0 ? convert(build, node, branches->dtype) : node);
  const auto node = build_map(context, MapFn::where, nodes, branches->dtype, spans, whole);
  if (!node) return std::nullopt;
  return Value{*node};
}

}  // namespace

std::optional<Value> elementwise_operator(Context& context, MapFn fn, std::span<const Value> operands, std::span<const Span> spans,
                                          Span whole) {
  EINC_CHECK(static_cast<int>(operands.size()) == arity_of(fn) && spans.size() == operands.size(), "{} takes {} operands", to_string(fn),
             arity_of(fn));
  const NodesFrom nodes_from(context, whole);
  Builder& build = context.build();
  if (fn == MapFn::where) return build_where(context, operands, spans, whole);
  if (const auto numbers = all_numbers(operands)) {
    const auto folded = fold_numbers(fn, *numbers);
    if (const Number* number = std::get_if<Number>(&folded)) return Value{*number};
    if (std::get<NumberFault>(folded) == NumberFault::division_by_zero) {
      context.diagnostics().report(Code::division_by_zero, whole).label(spans.back(), "this is 0");
      return std::nullopt;
    }
  }
  if (divides_by_zero(fn, operands.back())) {
    context.diagnostics().report(Code::division_by_zero, whole).label(spans.back(), "this is 0");
    return std::nullopt;
  }
  if (fn == MapFn::pow)
    if (const auto n = integer_exponent(operands[0], operands[1], build))
      return Value{integer_power(build, std::get<NodeId>(operands[0].data), *n)};

  auto promoted = promote_operands(context, operands, spans, is_comparison(fn) || divides_integers(fn) ? DType::i64 : DType::real);
  if (!promoted) return std::nullopt;
  if (divides_integers(fn) && is_floating(promoted->dtype)) {
    refuse_reals(context, fn, operands, spans);
    return std::nullopt;
  }
  if (rounds_to_integer(fn) && !is_floating(promoted->dtype)) return Value{promoted->nodes[0]};
  if (is_logical(fn)) {
    bool fine = true;
    for (size_t k = 0; k < promoted->nodes.size(); ++k) fine = check_bool(context, fn, promoted->nodes[k], spans[k]) && fine;
    if (!fine) return std::nullopt;
  } else if (promoted->dtype == DType::boolean && !is_comparison(fn)) {
    fn = bool_counterpart(fn);
    if (!is_logical(fn))
      for (NodeId& node : promoted->nodes) node = convert(build, node, DType::i32);
  }
  std::vector<DType> dtypes;
  for (NodeId node : promoted->nodes) dtypes.push_back(build.type(node).dtype);
  const auto node = build_map(context, fn, std::move(promoted->nodes), Builder::map_dtype(fn, dtypes), spans, whole);
  if (!node) return std::nullopt;
  return Value{*node};
}

namespace {

std::vector<Span> spans_of(std::span<const ast::Argument* const> arguments) {
  std::vector<Span> spans;
  for (const ast::Argument* argument : arguments) spans.push_back(argument->value->span);
  return spans;
}

std::string usage_of(const ast::Call& call, MapFn fn) {
  const std::string& name = call.callee.name.str();
  const int arity = arity_of(fn);
  return fmt::format("`{}({})`", name,
                     arity == 1           ? "x"
                     : fn == MapFn::where ? "condition, a, b"
                     : fn == MapFn::clamp ? "x, lo, hi"
                     : fn == MapFn::atan2 ? "y, x"
                                          : "a, b");
}

std::optional<Value> call_map(Context& context, const ast::Call& call, MapFn fn) {
  const size_t arity = static_cast<size_t>(arity_of(fn));
  if (!check_arguments(context, call, arity, arity, usage_of(call, fn))) return std::nullopt;
  const auto arguments = positional_arguments(call);
  const auto values = evaluate_operands(context, arguments);
  if (!values) return std::nullopt;
  return elementwise_operator(context, fn, *values, spans_of(arguments), span_of(call));
}

// Functions that stand in the table of MapFn under their own name.
std::optional<Value> named_function(Context& context, const ast::Call& call) {
  return call_map(context, call, *parse_map_fn(call.callee.name.str()));
}

// `max(x)`, `max(x, seq)`: one argument, or every later one a bare name of an axis of the first.
bool means_reduction(Context& context, std::span<const ast::Argument* const> arguments, const Value& first) {
  if (arguments.size() == 1) return true;
  const NodeId* node = std::get_if<NodeId>(&first.data);
  if (node == nullptr) return false;
  const std::vector<Axis>& axes = context.build().type(*node).axes;
  return std::all_of(arguments.begin() + 1, arguments.end(), [&](const ast::Argument* argument) {
    const auto* name = argument->value->as<ast::NameRef>();
    return name != nullptr && std::any_of(axes.begin(), axes.end(), [&](const Axis& axis) { return axis.name == name->name; });
  });
}

std::optional<Value> extreme(Context& context, const ast::Call& call) {
  const bool is_max = call.callee.name.str() == "max";
  const std::string usage = fmt::format("`{0}(a, b)` of values or `{0}(x, axis)` over an axis", call.callee.name.str());
  if (!check_arguments(context, call, 1, SIZE_MAX, usage)) return std::nullopt;
  const auto arguments = positional_arguments(call);
  const ElementwiseTree around = std::exchange(context.tree(), ElementwiseTree());
  const auto first = context.evaluate_operand(*arguments[0]->value);
  const bool reduces = first && means_reduction(context, arguments, *first);
  const auto* reduced = reduces ? std::get_if<NodeId>(&first->data) : nullptr;
  const bool fine = !reduced || context.refuse_outer_product(*reduced);
  const ElementwiseTree own = std::exchange(context.tree(), around);
  if (!first || !fine) return std::nullopt;
  if (reduces)
    return reduce_value(context, is_max ? Reduction::max : Reduction::min, *first, std::span(arguments).subspan(1), span_of(call));
  context.tree().merge(own);
  const auto rest = evaluate_operands(context, std::span(arguments).subspan(1));
  if (!rest) return std::nullopt;
  const std::vector<Span> spans = spans_of(arguments);
  Value result = *first;
  Span so_far = spans[0];
  for (size_t i = 0; i < rest->size(); ++i) {
    const Value pair[] = {result, (*rest)[i]};
    const Span pair_spans[] = {so_far, spans[i + 1]};
    const auto next = elementwise_operator(context, is_max ? MapFn::maximum : MapFn::minimum, pair, pair_spans, span_of(call));
    if (!next) return std::nullopt;
    result = *next;
    so_far = join(so_far, spans[i + 1]);
  }
  return result;
}

// cast(x, bf16): the result keeps that dtype whatever the precision policy.
std::optional<Value> cast_value(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 2, 2, "`cast(x, bf16)`")) return std::nullopt;
  const auto arguments = positional_arguments(call);
  const auto value = context.evaluate_operand(*arguments[0]->value);
  const auto* name = arguments[1]->value->as<ast::NameRef>();
  const auto dtype = name == nullptr ? std::nullopt : parse_dtype(name->name.str());
  if (!dtype && arguments[1]->value->kind() != ast::ExprKind::invalid) {
    auto report = context.diagnostics().report(Code::dtype_expected, arguments[1]->value->span);
    const auto* quoted = arguments[1]->value->as<ast::String>();
    if (quoted != nullptr && parse_dtype(quoted->value))
      report.hint("a dtype is a bare word: {}", quoted->value).replace(arguments[1]->value->span, quoted->value);
    else
      report.hint("dtypes are f64 f32 bf16 f16 f8e4m3 f8e5m2 i64 i32 u16 u8 bool");
  }
  if (!value || !dtype) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const bool was_pinned = build.origin.pinned;
  build.origin.pinned = true;
  std::optional<NodeId> node;
  if (const NodeId* tensor = std::get_if<NodeId>(&value->data)) {
    node = convert(build, *tensor, *dtype);
    if (context.tree().made(*tensor)) context.tree().pass_on(*node);
  } else if (const Number* number = std::get_if<Number>(&value->data)) {
    node = number_to_tensor(context, *number, *dtype, arguments[0]->value->span);
  } else {
    context.diagnostics().report(Code::tensor_expected, arguments[0]->value->span, "several values");
  }
  build.origin.pinned = was_pinned;
  if (!node) return std::nullopt;
  return Value{*node};
}

std::optional<Value> stop_gradient(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 1, 1, "`stop_gradient(x)`")) return std::nullopt;
  const Span span = call.arguments[0].value->span;
  const auto value = context.evaluate_operand(*call.arguments[0].value);
  if (!value) return std::nullopt;
  if (const auto* tuple = std::get_if<Tuple>(&value->data)) {
    context.diagnostics().report(Code::several_values, span, tuple->items.size());
    return std::nullopt;
  }
  const auto x = to_tensor_alone(context, *value, span);
  if (!x) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  const NodeId stopped = context.build().stop_gradient(*x);
  if (context.tree().made(*x)) context.tree().pass_on(stopped);
  return Value{stopped};
}

// isnan: x != x. isinf and isfinite: by the magnitude.
std::optional<Value> classification(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 1, 1, fmt::format("`{}(x)`", name))) return std::nullopt;
  const auto x = context.evaluate_operand(*call.arguments[0].value);
  if (!x) return std::nullopt;
  const Span span = call.arguments[0].value->span, spans[] = {span, span};
  const Value itself[] = {*x, *x};
  if (name == "isnan") return elementwise_operator(context, MapFn::not_equal, itself, spans, span_of(call));
  const auto magnitude = elementwise_operator(context, MapFn::abs, std::span(itself).first(1), std::span(spans).first(1), span_of(call));
  if (!magnitude) return std::nullopt;
  const Value pair[] = {*magnitude, Value{Number{std::numeric_limits<double>::infinity(), false}}};
  return elementwise_operator(context, name == "isinf" ? MapFn::equal : MapFn::less, pair, spans, span_of(call));
}

std::optional<Value> power(Context& context, const ast::Call& call) { return call_map(context, call, MapFn::pow); }

constexpr Builtin kElementwise[] = {
    {"min", extreme, "min(a, b, ...), min(x, axis, ...)", "the least of each place, or along axes"},
    {"max", extreme, "max(a, b, ...), max(x, axis, ...)", "the greatest of each place, or along axes"},
    {"pow", power, "pow(a, b)", "a^b"},
    {"isnan", classification, "isnan(x)", "bool"},
    {"isinf", classification, "isinf(x)", "bool"},
    {"isfinite", classification, "isfinite(x)", "bool"},
    {"cast", cast_value, "cast(x, dtype)", "x in another dtype; to integers toward 0, within their range"},
    {"stop_gradient", stop_gradient, "stop_gradient(x)", "x, through which no gradient passes"},
    {"where", named_function, "where(c, a, b)", "a where c is true, b elsewhere"},
    {"exp", named_function, "exp(x)", "e^x"},
    {"log", named_function, "log(x)", "natural logarithm"},
    {"log1p", named_function, "log1p(x)", "log(1 + x)"},
    {"expm1", named_function, "expm1(x)", "exp(x) - 1"},
    {"sqrt", named_function, "sqrt(x)", "square root"},
    {"rsqrt", named_function, "rsqrt(x)", "1 / sqrt(x)"},
    {"abs", named_function, "abs(x)", "magnitude; slope 0 at 0"},
    {"sign", named_function, "sign(x)", "-1, 0 or 1"},
    {"sin", named_function, "sin(x)", "of radians"},
    {"cos", named_function, "cos(x)", "of radians"},
    {"tan", named_function, "tan(x)", "of radians"},
    {"asin", named_function, "asin(x)", "radians"},
    {"acos", named_function, "acos(x)", "radians"},
    {"atan", named_function, "atan(x)", "radians"},
    {"atan2", named_function, "atan2(y, x)", "the angle of the point x, y; slope 0 at 0, 0"},
    {"sinh", named_function, "sinh(x)", "hyperbolic sine"},
    {"cosh", named_function, "cosh(x)", "hyperbolic cosine"},
    {"tanh", named_function, "tanh(x)", "hyperbolic tangent"},
    {"sigmoid", named_function, "sigmoid(x)", "1 / (1 + exp(-x))"},
    {"erf", named_function, "erf(x)", "error function"},
    {"erfc", named_function, "erfc(x)", "1 - erf(x)"},
    {"erfinv", named_function, "erfinv(x)", "inverse of erf"},
    {"lgamma", named_function, "lgamma(x)", "log of the gamma function's magnitude"},
    {"relu", named_function, "relu(x)", "max(x, 0)"},
    {"gelu", named_function, "gelu(x)", "x times the normal distribution function of x"},
    {"gelu_tanh", named_function, "gelu_tanh(x)", "gelu's approximation by tanh"},
    {"silu", named_function, "silu(x)", "x * sigmoid(x)"},
    {"softplus", named_function, "softplus(x)", "log(1 + exp(x))"},
    {"floor", named_function, "floor(x)", "down to an integer"},
    {"ceil", named_function, "ceil(x)", "up to an integer"},
    {"round", named_function, "round(x)", "to the nearest integer, ties to the even one"},
    {"trunc", named_function, "trunc(x)", "to an integer toward 0"},
    {"clamp", named_function, "clamp(x, lo, hi)", "x within bounds"},
};

}  // namespace

std::span<const Builtin> elementwise_builtins() { return kElementwise; }

}  // namespace einc
