// Elementwise operators and functions: operands are aligned by axis name, numbers take the dtype of the tensors beside
// them, and one `map` node is built with explicit axis maps, so that nothing is broadcast in the graph.
#include <fmt/format.h>

#include <algorithm>
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
          .hint("name its axes first: `y: {} = ...`", suggest_annotation(type.axes));
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
  if (fn == MapFn::pow)
    if (const auto n = integer_exponent(operands[0], operands[1], build))
      return Value{integer_power(build, std::get<NodeId>(operands[0].data), *n)};

  auto promoted = promote_operands(context, operands, spans, is_comparison(fn) ? DType::i64 : DType::real);
  if (!promoted) return std::nullopt;
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
  return fmt::format("`{}({})`", name, arity == 1 ? "x" : fn == MapFn::where ? "condition, a, b" : "a, b");
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
  if (!dtype && arguments[1]->value->kind() != ast::ExprKind::invalid)
    context.diagnostics()
        .report(Code::dtype_expected, arguments[1]->value->span)
        .hint("dtypes are f64 f32 bf16 f16 f8e4m3 f8e5m2 i64 i32 u16 u8 bool");
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

std::optional<Value> power(Context& context, const ast::Call& call) { return call_map(context, call, MapFn::pow); }

constexpr Builtin kElementwise[] = {
    {"where", named_function}, {"min", extreme},
    {"max", extreme},          {"pow", power},
    {"exp", named_function},   {"log", named_function},
    {"log1p", named_function}, {"expm1", named_function},
    {"sqrt", named_function},  {"rsqrt", named_function},
    {"abs", named_function},   {"sign", named_function},
    {"sin", named_function},   {"cos", named_function},
    {"tanh", named_function},  {"sigmoid", named_function},
    {"erf", named_function},   {"relu", named_function},
    {"gelu", named_function},  {"gelu_tanh", named_function},
    {"silu", named_function},  {"softplus", named_function},
    {"cast", cast_value},      {"stop_gradient", stop_gradient},
};

}  // namespace

std::span<const Builtin> elementwise_builtins() { return kElementwise; }

}  // namespace einc
