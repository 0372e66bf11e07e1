// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/reductions.h"

#include <array>

#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/numbers.h"
#include "compiler/elaborate/promote.h"

namespace einc {
namespace {

struct ReductionName {
  std::string_view name;
  Reduction reduction;
};
constexpr std::array kReductionNames{
    ReductionName{"sum", Reduction::sum}, ReductionName{"mean", Reduction::mean}, ReductionName{"max", Reduction::max},
    ReductionName{"min", Reduction::min}, ReductionName{"prod", Reduction::prod}, ReductionName{"var", Reduction::var},
    ReductionName{"any", Reduction::any}, ReductionName{"all", Reduction::all},   ReductionName{"logsumexp", Reduction::logsumexp},
    ReductionName{"std", Reduction::std}, ReductionName{"norm", Reduction::norm}};

NodeId reduce(Builder& build, ReduceFn fn, NodeId x, const AxisList& axes) { return axes.empty() ? x : build.reduce(fn, x, axes); }

// sum(x) * (1/n), one multiplication for each result.
NodeId build_mean(Builder& build, NodeId x, const AxisList& axes) {
  Poly count(1);
  for (int axis : axes) count = count * build.type(x).axis(axis).size;
  if (count.is_one()) return reduce(build, ReduceFn::sum, x, axes);
  const NodeId total = reduce(build, ReduceFn::sum, x, axes);
  return build.map(MapFn::mul, {total, build.constant(divide(Poly(1), count), build.type(x).dtype)});
}

// mean((x - mean(x))^2): the population's variance, as norms use it.
NodeId build_var(Builder& build, NodeId x, const AxisList& axes) {
  const NodeId mean = build_mean(build, x, axes);
  AxisList kept;
  for (int i = 0; i < build.type(x).rank(); ++i)
    if (!axes.contains(i)) kept.push_back(i);
  const NodeId operands[] = {x, mean};
  const AxisList maps[] = {AxisList::range(build.type(x).rank()), kept};
  const NodeId centred = build.map(MapFn::sub, operands, maps, build.type(x).axes, build.type(x).dtype);
  return build_mean(build, build.map(MapFn::mul, {centred, centred}), axes);
}

// The root of a sum of squares; where that is 0, so is the gradient.
NodeId build_root(Builder& build, NodeId squares) {
  const NodeId zero = build.constant(Poly(0), build.type(squares).dtype);
  return build.map(MapFn::where, {build.map(MapFn::greater, {squares, zero}), build.map(MapFn::sqrt, {squares}), squares});
}

NodeId build_norm(Builder& build, NodeId x, const AxisList& axes) {
  return build_root(build, reduce(build, ReduceFn::sum, build.map(MapFn::mul, {x, x}), axes));
}

NodeId counted(Builder& build, NodeId x) { return is_floating(build.type(x).dtype) ? x : convert(build, x, DType::i64); }

NodeId truth(Builder& build, NodeId x) {
  const DType dtype = build.type(x).dtype;
  return dtype == DType::boolean ? x : build.map(MapFn::not_equal, {x, build.constant(Poly(0), dtype)});
}

}  // namespace

std::optional<Reduction> parse_reduction(std::string_view name) {
  for (const ReductionName& row : kReductionNames)
    if (row.name == name) return row.reduction;
  return std::nullopt;
}

std::vector<std::string_view> reduction_names() {
  std::vector<std::string_view> names;
  for (const ReductionName& row : kReductionNames) names.push_back(row.name);
  return names;
}

NodeId widen(Builder& build, NodeId x) {
  const DType dtype = build.type(x).dtype;
  if (!is_floating(dtype)) return convert(build, x, DType::real);
  return bytes_of(dtype) < 4 ? convert(build, x, DType::f32) : x;
}

NodeId narrow(Builder& build, NodeId x, DType dtype) { return is_floating(dtype) ? convert(build, x, dtype) : x; }

NodeId build_reduction(Builder& build, Reduction reduction, NodeId x, const AxisList& axes) {
  const DType dtype = build.type(x).dtype;
  switch (reduction) {
    case Reduction::sum:
      return reduce(build, ReduceFn::sum, counted(build, x), axes);
    case Reduction::prod:
      return reduce(build, ReduceFn::prod, counted(build, x), axes);
    case Reduction::max:
      return reduce(build, dtype == DType::boolean ? ReduceFn::any : ReduceFn::max, x, axes);
    case Reduction::min:
      return reduce(build, dtype == DType::boolean ? ReduceFn::all : ReduceFn::min, x, axes);
    case Reduction::any:
      return reduce(build, ReduceFn::any, truth(build, x), axes);
    case Reduction::all:
      return reduce(build, ReduceFn::all, truth(build, x), axes);
    case Reduction::mean:
      return narrow(build, build_mean(build, widen(build, x), axes), dtype);
    case Reduction::var:
      return narrow(build, build_var(build, widen(build, x), axes), dtype);
    case Reduction::std:
      return narrow(build, build_root(build, build_var(build, widen(build, x), axes)), dtype);
    case Reduction::norm:
      return narrow(build, build_norm(build, widen(build, x), axes), dtype);
    case Reduction::logsumexp:
      return axes.empty() ? to_floating(build, x) : narrow(build, build.logsumexp(widen(build, x), axes), dtype);
  }
  internal_error(__FILE__, __LINE__, "no such reduction");
}

std::optional<Value> reduce_value(Context& context, Reduction reduction, const Value& x, std::span<const ast::Argument* const> axes,
                                  Span whole) {
  const NodesFrom nodes_from(context, whole);
  Builder& build = context.build();
  const auto node = to_tensor_alone(context, x, whole);
  if (!node) return std::nullopt;
  const Type type = build.type(*node);
  const auto list = axes_or_all(context, type, axes);
  if (!list) return std::nullopt;
  return Value{build_reduction(build, reduction, *node, *list)};
}

}  // namespace einc
