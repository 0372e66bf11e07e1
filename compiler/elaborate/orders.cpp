// SPDX-License-Identifier: Apache-2.0
// Built-ins for which elements along an axis have an order: running reductions, the k largest, sorts.
#include <fmt/format.h>

#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/axis_ops.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/reductions.h"
#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

ReduceFn running_fn(std::string_view name) {
  if (name == "cumsum") return ReduceFn::sum;
  if (name == "cumprod") return ReduceFn::prod;
  if (name == "cummax") return ReduceFn::max;
  return name == "cummin" ? ReduceFn::min : ReduceFn::logsumexp;
}

// The elements of x at positions along one of its axes; all other axes are shared.
NodeId taken_at(Builder& build, NodeId x, int axis, NodeId positions) {
  const Type type = build.type(positions);
  GatherAttr attr{axis, AxisList::range(type.rank()), AxisList::range(type.rank())};
  attr.table_map.set(axis, kNoAxis);
  return build.gather(x, positions, attr, type.axes);
}

}  // namespace

// top_k(x, axis, k): the k largest in descending order, ties by lower index; top_k_index: where they are. With `smallest = true` the k
// smallest in ascending order.
std::optional<Value> call_top_k(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 3, 3, fmt::format("`{}(x, axis, k)`", name), {"smallest"})) return std::nullopt;
  const auto arguments = positional_arguments(call);
  const auto smallest = flag_argument(context, call, "smallest");
  const auto along = read_along_axis(context, arguments, 1);
  const auto k = context.evaluate_size(*arguments[2]->value);
  if (!along || !k || !smallest) return std::nullopt;
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
  const NodeId where = build.top_k_index(along->x, along->axis, *k, *smallest ? ReduceFn::min : ReduceFn::max);
  build.graph()[where].type.dtype = index_dtype(context, axis.size);
  if (name == "top_k_index") return Value{where};
  return Value{taken_at(build, along->x, along->axis, where)};
}

NodeId build_argsort(Context& context, NodeId x, int axis, ReduceFn order) {
  Builder& build = context.build();
  const Poly size = build.type(x).axis(axis).size;
  const NodeId positions = build.top_k_index(x, axis, size, order);
  build.graph()[positions].type.dtype = index_dtype(context, size);
  return positions;
}

// sort(x, axis), stable, NaN the greatest; argsort: where the elements were.
std::optional<Value> call_sort(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 2, 2, fmt::format("`{}(x, axis)`", name), {"descending"})) return std::nullopt;
  const auto along = read_along_axis(context, positional_arguments(call), 1);
  const auto descending = flag_argument(context, call, "descending");
  if (!along || !descending) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  const NodeId positions = build_argsort(context, along->x, along->axis, *descending ? ReduceFn::max : ReduceFn::min);
  return Value{name == "argsort" ? positions : taken_at(context.build(), along->x, along->axis, positions)};
}

// What runs along an axis, each element included; sums and products of integers are i64.
std::optional<Value> call_cumulate(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 2, 2, fmt::format("`{}(x, axis)`", name))) return std::nullopt;
  const auto along = read_along_axis(context, positional_arguments(call), 1);
  if (!along) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const ReduceFn fn = running_fn(name);
  const DType dtype = build.type(along->x).dtype;
  const bool extreme = fn == ReduceFn::max || fn == ReduceFn::min;
  NodeId x = along->x;
  if (extreme)
    x = dtype == DType::boolean ? convert(build, x, DType::i32) : x;
  else
    x = is_floating(dtype) || fn == ReduceFn::logsumexp ? widen(build, x) : convert(build, x, DType::i64);
  const NodeId running = build.cumulate(fn, x, along->axis, Direction::forward);
  return Value{dtype == DType::boolean && extreme ? convert(build, running, dtype) : narrow(build, running, dtype)};
}

}  // namespace einc
