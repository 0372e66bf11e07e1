// SPDX-License-Identifier: Apache-2.0
// Random tensors. Every call draws from a stream of its own, anew in each run.
#include <fmt/format.h>

#include "compiler/elaborate/align.h"
#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/axis_ops.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/reductions.h"
#include "runtime/base/random.h"

namespace einc {
namespace {

NodeId draw(Context& context, RandomKind kind, DType dtype, const std::vector<Axis>& axes, Span span) {
  return context.build().random(RandomAttr{kind, context.random_stream(span), 1}, Type{dtype, axes});
}

// An integer formula in the dims.
std::optional<Poly> integer_argument(Context& context, const ast::Argument& argument) {
  const auto value = context.evaluate(*argument.value);
  if (!value) return std::nullopt;
  if (const Poly* poly = integer_poly(*value)) return *poly;
  context.diagnostics()
      .report(Code::integer_operands, argument.value->span, "randint", describe_value(context, *value))
      .hint("its ends are integers and dims");
  return std::nullopt;
}

}  // namespace

// normal(axes...) with mean 0 and deviation 1, uniform(axes...) in [0, 1).
std::optional<Value> call_random(Context& context, const ast::Call& call) {
  std::vector<const ast::Argument*> arguments;
  for (const ast::Argument& argument : call.arguments) arguments.push_back(&argument);
  const auto axes = new_axes(context, arguments);
  if (!axes || !check_rank(context, axes->size(), span_of(call))) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  const RandomKind kind = call.callee.name.str() == "normal" ? RandomKind::normal : RandomKind::uniform;
  return Value{draw(context, kind, DType::real, *axes, span_of(call))};
}

// bernoulli(p): true with probability p, for each element of p on its own.
std::optional<Value> call_bernoulli(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 1, 1, "`bernoulli(p)`")) return std::nullopt;
  const auto value = context.evaluate(*call.arguments[0].value);
  const auto p = value ? to_tensor(context, *value, DType::real, call.arguments[0].value->span) : std::nullopt;
  if (!p) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const NodeId share = draw(context, RandomKind::uniform, DType::real, build.type(*p).axes, span_of(call));
  return Value{build.map(MapFn::less, {share, *p})};
}

// randint(lo, hi, axes...): lo + floor(bits (hi - lo) / 2^31), so that each integer has its share to within 2^-31.
std::optional<Value> call_randint(Context& context, const ast::Call& call) {
  if (call.arguments.size() < 2 || call.arguments[0].name || call.arguments[1].name) {
    context.diagnostics()
        .report(Code::builtin_arguments, span_of(call), call.callee.name, "2 integers and axes", call.arguments.size())
        .hint("write `randint(0, 10, axis)`");
    return std::nullopt;
  }
  std::vector<const ast::Argument*> axis_arguments;
  for (size_t i = 2; i < call.arguments.size(); ++i) axis_arguments.push_back(&call.arguments[i]);
  const auto low = integer_argument(context, call.arguments[0]), high = integer_argument(context, call.arguments[1]);
  const auto axes = new_axes(context, axis_arguments);
  if (!low || !high || !axes || !check_rank(context, axes->size(), span_of(call))) return std::nullopt;
  const Span range = join(call.arguments[0].span, call.arguments[1].span);
  const Condition conditions[] = {{ConditionKind::at_least, *high - *low, Poly(1), -1, "the range of randint"},
                                  {ConditionKind::at_least, *low, Poly(INT32_MIN), -1, "the range of randint"},
                                  {ConditionKind::at_least, Poly(int64_t{INT32_MAX} + 1), *high, -1, "the range of randint"}};
  for (const Condition& condition : conditions) {
    const Verdict verdict = decide(condition);
    if (verdict == Verdict::never) {
      context.diagnostics().report(Code::empty_range, range, *low, *high).hint("randint(lo, hi) draws i32 values with lo <= x < hi");
      return std::nullopt;
    }
    if (verdict == Verdict::depends) context.require(condition, range);
  }
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const auto number = [&](const Poly& value) { return build.constant(value, DType::i64); };
  const NodeId bits = build.cast(draw(context, RandomKind::bits, DType::i32, *axes, span_of(call)), DType::i64);
  const NodeId share = build.map(MapFn::floor_div, {build.map(MapFn::mul, {bits, number(*high - *low)}), number(Poly(kRandomBitsEnd))});
  const NodeId drawn = low->is_zero() ? share : build.map(MapFn::add, {share, number(*low)});
  return Value{build.cast(drawn, DType::i32)};
}

// categorical(logits, axis): the largest of logits plus Gumbel's noise is a draw from softmax(logits) (Gumbel 1954).
std::optional<Value> call_categorical(Context& context, const ast::Call& call) {
  if (!check_arguments(context, call, 2, 2, "`categorical(logits, axis)`")) return std::nullopt;
  const auto along = read_along_axis(context, positional_arguments(call), 1);
  if (!along) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const NodeId logits = widen(build, along->x);
  const Type type = build.type(logits);
  const NodeId noise = draw(context, RandomKind::gumbel, type.dtype, type.axes, span_of(call));
  const NodeId class_number = build.arg_reduce(ReduceFn::max, build.map(MapFn::add, {logits, noise}), along->axis);
  build.graph()[class_number].type.dtype = index_dtype(context, type.axis(along->axis).size);
  return Value{class_number};
}

// permutation(axis): where random numbers of 62 bits would stand in order.
std::optional<Value> call_permutation(Context& context, const ast::Call& call) {
  if (call.arguments.size() != 1) {
    context.diagnostics()
        .report(Code::builtin_arguments, span_of(call), call.callee.name, "1 argument", call.arguments.size())
        .hint("write `permutation(axis)`");
    return std::nullopt;
  }
  const auto axis = new_axis(context, call.arguments[0]);
  if (!axis) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const auto bits = [&] { return build.cast(draw(context, RandomKind::bits, DType::i32, {*axis}, span_of(call)), DType::i64); };
  const NodeId high = build.map(MapFn::mul, {bits(), build.constant(Poly(kRandomBitsEnd), DType::i64)});
  return Value{build_argsort(context, build.map(MapFn::add, {high, bits()}), 0, ReduceFn::min)};
}

}  // namespace einc
