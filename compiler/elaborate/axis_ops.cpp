// SPDX-License-Identifier: Apache-2.0
// Built-ins that take a tensor and the names of axes: reductions, positions of extremes, softmax and its relatives.
#include "compiler/elaborate/axis_ops.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>

#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/promote.h"
#include "compiler/elaborate/reductions.h"
#include "compiler/elaborate/scope.h"

namespace einc {
namespace {

std::optional<Value> call_reduction(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 1, SIZE_MAX, fmt::format("`{}(x, axis)`", name))) return std::nullopt;
  const auto arguments = positional_arguments(call);
  const auto x = context.evaluate(*arguments[0]->value);
  if (!x) return std::nullopt;
  return reduce_value(context, *parse_reduction(name), *x, std::span(arguments).subspan(1), span_of(call));
}

// argmax(x, axes...): the position of the first extreme; over several axes, counted row by row in the order they are named.
std::optional<Value> call_arg_reduction(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 1, SIZE_MAX, fmt::format("`{}(x, axis)`", name))) return std::nullopt;
  const auto arguments = positional_arguments(call);
  const auto x = context.evaluate_tensor(*arguments[0]->value);
  if (!x) return std::nullopt;
  Builder& build = context.build();
  const Type type = build.type(*x);
  const auto axes = axes_or_all(context, type, std::span(arguments).subspan(1));
  if (!axes) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  AxisList order;
  std::vector<Axis> out_axes;
  for (int i = 0; i < type.rank(); ++i)
    if (!axes->contains(i)) {
      order.push_back(i);
      out_axes.push_back(type.axis(i));
    }
  AxisList counts;
  for (int i = 0; i < order.size(); ++i) counts.push_back(1);
  counts.push_back(axes->size());
  Poly size(1);
  for (int axis : *axes) {
    order.push_back(axis);
    size = size * type.axis(axis).size;
  }
  const int kept = static_cast<int>(out_axes.size());
  NodeId flat = *x;
  int axis = kept;
  if (axes->size() == 1) {
    axis = (*axes)[0];
  } else {
    if (!order.is_identity()) flat = build.permute(flat, order);
    out_axes.push_back(Axis{Name("(all)"), size});
    flat = build.merge(flat, counts, out_axes);
  }
  const NodeId position = build.arg_reduce(name == "argmax" ? ReduceFn::max : ReduceFn::min, flat, axis);
  build.graph()[position].type.dtype = index_dtype(context, size);
  return Value{position};
}

std::optional<Value> call_softmax(Context& context, const ast::Call& call) {
  const std::string& name = call.callee.name.str();
  if (!check_arguments(context, call, 2, 2, fmt::format("`{}(x, axis)`", name))) return std::nullopt;
  const auto along = read_along_axis(context, positional_arguments(call), 1);
  if (!along) return std::nullopt;
  const NodesFrom nodes_from(context, span_of(call));
  Builder& build = context.build();
  const DType dtype = build.type(along->x).dtype;
  const NodeId x = widen(build, along->x);
  if (name == "softmax") return Value{narrow(build, build.softmax(x, along->axis), dtype)};
  // log_softmax(x) = x - logsumexp(x)
  const Type type = build.type(x);
  const NodeId operands[] = {x, build.logsumexp(x, {along->axis})};
  AxisList kept;
  for (int i = 0; i < type.rank(); ++i)
    if (i != along->axis) kept.push_back(i);
  const AxisList maps[] = {AxisList::range(type.rank()), kept};
  return Value{narrow(build, build.map(MapFn::sub, operands, maps, type.axes, type.dtype), dtype)};
}

constexpr Builtin kAxisOps[] = {
    {"sum", call_reduction, "sum(x, axis, ...)", "over all axes without one, as all reductions"},
    {"mean", call_reduction, "mean(x, axis, ...)", "sum divided by the number"},
    {"prod", call_reduction, "prod(x, axis, ...)", "product"},
    {"var", call_reduction, "var(x, axis, ...)", "variance, divided by n"},
    {"any", call_reduction, "any(x, axis, ...)", "whether one is true"},
    {"all", call_reduction, "all(x, axis, ...)", "whether each is true"},
    {"logsumexp", call_reduction, "logsumexp(x, axis, ...)", "log of the sum of exponentials"},
    {"argmax", call_arg_reduction, "argmax(x, axis, ...)", "place of the greatest, the first of equals"},
    {"argmin", call_arg_reduction, "argmin(x, axis, ...)", "place of the least, the first of equals"},
    {"softmax", call_softmax, "softmax(x, axis)", "exponentials divided by their sum"},
    {"log_softmax", call_softmax, "log_softmax(x, axis)", "log of softmax"},
    {"std", call_reduction, "std(x, axis, ...)", "square root of var"},
    {"norm", call_reduction, "norm(x, axis, ...)", "2-norm"},
    {"cumsum", call_cumulate, "cumsum(x, axis)", "sums of all up to each place"},
    {"cumprod", call_cumulate, "cumprod(x, axis)", "products so far"},
    {"cummax", call_cumulate, "cummax(x, axis)", "greatest so far"},
    {"cummin", call_cumulate, "cummin(x, axis)", "least so far"},
    {"logcumsumexp", call_cumulate, "logcumsumexp(x, axis)", "logsumexp so far"},
    {"top_k", call_top_k, "top_k(x, axis, k, smallest = false)", "the k greatest, in order; the axis has size k"},
    {"top_k_index", call_top_k, "top_k_index(x, axis, k, smallest = false)", "their places"},
    {"sort", call_sort, "sort(x, axis, descending = false)", "in order"},
    {"argsort", call_sort, "argsort(x, axis, descending = false)", "the places in order, stable"},
    {"flip", call_flip, "flip(x, axis, ...)", "the other way round"},
    {"segment_sum", call_segment, "segment_sum(values, ids, nodes, axis, ...)", "sum of the values of each id"},
    {"segment_mean", call_segment, "segment_mean(values, ids, nodes, axis, ...)", "their mean; 0 of none"},
    {"segment_max", call_segment, "segment_max(values, ids, nodes, axis, ...)", "their greatest; -inf of none"},
    {"segment_min", call_segment, "segment_min(values, ids, nodes, axis, ...)", "their least; inf of none"},
    {"cross_entropy", call_cross_entropy, "cross_entropy(logits, targets, axis, ignore = -100, smoothing = 0)",
     "of each element; targets are integers"},
    {"iota", call_iota, "iota(axis), iota(name = size)", "0, 1, 2, ..."},
    {"one_hot", call_one_hot, "one_hot(i, axis)", "1 at place i of a new axis, 0 elsewhere"},
    {"concat", call_concat, "concat(a, b, ..., axis)", "one behind the other"},
    {"stack", call_stack, "stack(a, b, ..., axis)", "along a new axis, which comes first"},
    {"pad", call_pad, "pad(x, axis = (before, after), value = 0)", "larger; or mode = \"reflect\", \"replicate\", \"circular\""},
    {"dropout", call_dropout, "dropout(x, p)", "while training a share p is 0 and the rest is scaled up"},
    {"normal", call_random, "normal(axis, ...)", "drawn, mean 0, deviation 1"},
    {"uniform", call_random, "uniform(axis, ...)", "drawn, from 0 to below 1"},
    {"bernoulli", call_bernoulli, "bernoulli(p)", "drawn, true with probability p"},
    {"randint", call_randint, "randint(lo, hi, axis, ...)", "drawn, from lo to below hi"},
    {"categorical", call_categorical, "categorical(logits, axis)", "a drawn index, the axis dropped"},
    {"permutation", call_permutation, "permutation(axis)", "0, 1, 2, ... in a drawn order"},
    {"zeros", call_filled, "zeros(axis, ...)", "0"},
    {"ones", call_filled, "ones(axis, ...)", "1"},
    {"full", call_filled, "full(axis, ..., value)", "the value"},
};

}  // namespace

std::optional<AlongAxis> read_along_axis(Context& context, const std::vector<const ast::Argument*>& arguments, size_t axis_argument_index) {
  const auto x = context.evaluate_tensor(*arguments[0]->value);
  if (!x) return std::nullopt;
  const Type type = context.build().type(*x);
  const auto axis = axis_argument(context, type, *arguments[axis_argument_index]);
  if (!axis) return std::nullopt;
  return AlongAxis{*x, *axis};
}

DType index_dtype(Context& context, const Poly& size) {
  const auto count = size.to_double(context.order_values());
  return count && *count > static_cast<double>(std::numeric_limits<int32_t>::max()) ? DType::i64 : DType::i32;
}

std::span<const Builtin> axis_builtins() { return kAxisOps; }

}  // namespace einc
