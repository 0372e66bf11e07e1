// SPDX-License-Identifier: Apache-2.0
// Gradients of reductions and the normalising composites. g is the gradient of the result.
#include "compiler/autodiff/rules.h"

namespace einc {
namespace {

Partial place(const Partial& partial, const AxisList& kept) {
  AxisList axes;
  for (int axis : partial.axes) axes.push_back(kept[axis]);
  return {partial.value, axes};
}

// y = max(x): the elements equal to y share g equally. dx = where(x = y, g / number of them, 0).
Partial share_among_extremes(const Backward& b, const Partial& x, const Partial& y, const Partial& g, const AxisList& reduced) {
  const std::vector<Axis> frame = b.operand_type(0).axes;
  const AxisList kept = AxisList::all_but(static_cast<int>(frame.size()), reduced);
  const Partial hit = b.apply(MapFn::equal, {x, y}, frame);
  const NodeId count = b.build.reduce(ReduceFn::sum, b.build.cast(hit.value, b.build.type(g.value).dtype), reduced);
  const Partial share = b.apply(MapFn::div, {g, Partial{count, kept}}, frame);
  return b.apply(MapFn::where, {hit, share, Partial{b.constant(Poly(0), g.value), {}}}, frame);
}

// y = product of x: dx = g times the product of the other elements, P/x_ Z. P is the product of the elements other than 0,
// x_ is x with 1 for 0, and Z the product of the zeros among the others: 1 if there is none, that one (the sum S of them) if
// there is one, else 0. Z = S has the value 0, but a slope: so second derivatives are exact at zeros too.
Partial share_of_product(const Backward& b, const Partial& x, const Partial& g, const AxisList& reduced) {
  const std::vector<Axis> frame = b.operand_type(0).axes;
  const AxisList kept = AxisList::all_but(static_cast<int>(frame.size()), reduced);
  const Partial zero{b.constant(Poly(0), x.value), {}}, one{b.constant(Poly(1), x.value), {}};
  const auto over_others = [&](const Partial& of_each) {  // the sum over the other elements
    const Partial all{b.build.reduce(ReduceFn::sum, of_each.value, reduced), kept};
    return b.apply(MapFn::sub, {all, of_each}, frame);
  };
  const Partial is_zero = b.apply(MapFn::equal, {x, zero}, frame);
  const Partial filled = b.apply(MapFn::where, {is_zero, one, x}, frame);
  const Partial product{b.build.reduce(ReduceFn::prod, filled.value, reduced), kept};
  const Partial count = over_others({b.build.cast(is_zero.value, b.build.type(x.value).dtype), is_zero.axes});
  const Partial sum = over_others(b.apply(MapFn::where, {is_zero, x, zero}, frame));
  const Partial only = b.apply(MapFn::where, {b.apply(MapFn::equal, {count, one}, frame), sum, zero}, frame);
  const Partial zeros = b.apply(MapFn::where, {b.apply(MapFn::equal, {count, zero}, frame), one, only}, frame);
  const Partial rest = b.apply(MapFn::mul, {b.apply(MapFn::div, {product, filled}, frame), zeros}, frame);
  return b.apply(MapFn::mul, {g, rest}, frame);
}

}  // namespace

// sum: dx = g, the same along the summed axes.
std::optional<Partial> gradient_of_reduce(const Backward& b, int) {
  const ReduceAttr& attr = b.attr<ReduceAttr>();
  const AxisList kept = AxisList::all_but(b.operand_type(0).rank(), attr.axes);
  const Partial g = place(b.gradient, kept), x = b.whole(b.operand(0));
  switch (attr.fn) {
    case ReduceFn::sum:
      return g;
    case ReduceFn::max:
    case ReduceFn::min:
      return share_among_extremes(b, x, Partial{b.id, kept}, g, attr.axes);
    case ReduceFn::prod:
      return share_of_product(b, x, g, attr.axes);
    case ReduceFn::any:
    case ReduceFn::all:
    case ReduceFn::logsumexp:
      return std::nullopt;
  }
  return std::nullopt;
}

// y = softmax(x): dx = y (g - sum(g y)).
std::optional<Partial> gradient_of_softmax(const Backward& b, int) {
  const AxisList& axes = b.attr<ReduceAttr>().axes;
  const Partial y = b.whole(b.id);
  const Partial gy = b.apply(MapFn::mul, {b.gradient, y}, b.axes());
  const Partial sum{b.build.reduce(ReduceFn::sum, gy.value, axes), AxisList::all_but(b.node.type.rank(), axes)};
  const Partial centred = b.apply(MapFn::sub, {b.gradient, sum}, b.axes());
  return b.apply(MapFn::mul, {y, centred}, b.axes());
}

// y = log(sum(exp(x))): dx = g exp(x - y).
std::optional<Partial> gradient_of_logsumexp(const Backward& b, int) {
  const std::vector<Axis> frame = b.operand_type(0).axes;
  const AxisList kept = AxisList::all_but(b.operand_type(0).rank(), b.attr<ReduceAttr>().axes);
  const Partial shifted = b.apply(MapFn::sub, {b.whole(b.operand(0)), Partial{b.id, kept}}, frame);
  const Partial softmax = b.apply(MapFn::exp, {shifted}, frame);
  return b.apply(MapFn::mul, {place(b.gradient, kept), softmax}, frame);
}

}  // namespace einc
