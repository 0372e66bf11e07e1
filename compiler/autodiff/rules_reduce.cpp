// Gradients of reductions, scans and the normalising composites. g is the gradient of the result.
#include "compiler/autodiff/rules.h"

namespace einc {
namespace {

// Positions of a reduction's result in its operand: the axes that are kept.
AxisList kept_axes(int rank, const AxisList& reduced) {
  AxisList kept;
  for (int i = 0; i < rank; ++i)
    if (!reduced.contains(i)) kept.push_back(i);
  return kept;
}

Partial place(const Partial& partial, const AxisList& kept) {
  AxisList axes;
  for (int axis : partial.axes) axes.push_back(kept[axis]);
  return {partial.value, axes};
}

// y = max(x): the elements equal to y share g equally. dx = where(x = y, g / number of them, 0).
Partial share_among_extremes(const Backward& b, const Partial& x, const Partial& y, const Partial& g, const AxisList& reduced) {
  const std::vector<Axis> frame = b.operand_type(0).axes;
  const AxisList kept = kept_axes(static_cast<int>(frame.size()), reduced);
  const Partial hit = b.apply(MapFn::equal, {x, y}, frame);
  const NodeId count = b.build.reduce(ReduceFn::sum, b.build.cast(hit.value, b.build.type(g.value).dtype), reduced);
  const Partial share = b.apply(MapFn::div, {g, Partial{count, kept}}, frame);
  return b.apply(MapFn::where, {hit, share, Partial{b.constant(Poly(0), g.value), {}}}, frame);
}

// y = product of x. With P the product of the elements other than 0 and n the number of zeros:
// dx = g P/x where n = 0; g P at the zero where n = 1; else 0.
Partial share_of_product(const Backward& b, const Partial& x, const Partial& g, const AxisList& reduced) {
  const std::vector<Axis> frame = b.operand_type(0).axes;
  const AxisList kept = kept_axes(static_cast<int>(frame.size()), reduced);
  const Partial zero{b.constant(Poly(0), x.value), {}}, one{b.constant(Poly(1), x.value), {}};
  const Partial is_zero = b.apply(MapFn::equal, {x, zero}, frame);
  const Partial others = b.apply(MapFn::where, {is_zero, one, x}, frame);
  const Partial product{b.build.reduce(ReduceFn::prod, others.value, reduced), kept};
  const Partial zeros{b.build.reduce(ReduceFn::sum, b.build.cast(is_zero.value, b.build.type(x.value).dtype), reduced), kept};
  // The number of zeros among the other elements is 0: n = 1 at a zero, n = 0 elsewhere.
  const Partial allowed = b.apply(MapFn::where, {is_zero, one, zero}, frame);
  const Partial alone = b.apply(MapFn::equal, {zeros, allowed}, frame);
  const Partial rest = b.apply(MapFn::div, {product, others}, frame);
  return b.apply(MapFn::where, {alone, b.apply(MapFn::mul, {g, rest}, frame), zero}, frame);
}

}  // namespace

// sum: dx = g, the same along the summed axes.
std::optional<Partial> gradient_of_reduce(const Backward& b, int) {
  const ReduceAttr& attr = b.attr<ReduceAttr>();
  const AxisList kept = kept_axes(b.operand_type(0).rank(), attr.axes);
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
      return std::nullopt;
  }
  return std::nullopt;
}

// Running sum: dx = running sum of g from the other end.
std::optional<Partial> gradient_of_scan(const Backward& b, int) {
  const ScanAttr& attr = b.attr<ScanAttr>();
  EINC_CHECK(attr.fn == ReduceFn::sum, "only a running sum can be differentiated");
  const int wanted[] = {attr.axis};
  const Partial g = b.with_axes(wanted);
  const Direction other = attr.direction == Direction::forward ? Direction::reverse : Direction::forward;
  return Partial{b.build.scan(ReduceFn::sum, g.value, g.axes.find(attr.axis), other), g.axes};
}

// y = softmax(x): dx = y (g - sum(g y)).
std::optional<Partial> gradient_of_softmax(const Backward& b, int) {
  const AxisList& axes = b.attr<ReduceAttr>().axes;
  const Partial y = b.whole(b.id);
  const Partial gy = b.apply(MapFn::mul, {b.gradient, y}, b.axes());
  const Partial sum{b.build.reduce(ReduceFn::sum, gy.value, axes), kept_axes(b.node.type.rank(), axes)};
  const Partial centred = b.apply(MapFn::sub, {b.gradient, sum}, b.axes());
  return b.apply(MapFn::mul, {y, centred}, b.axes());
}

// y = log(sum(exp(x))): dx = g exp(x - y).
std::optional<Partial> gradient_of_logsumexp(const Backward& b, int) {
  const std::vector<Axis> frame = b.operand_type(0).axes;
  const AxisList kept = kept_axes(b.operand_type(0).rank(), b.attr<ReduceAttr>().axes);
  const Partial shifted = b.apply(MapFn::sub, {b.whole(b.operand(0)), Partial{b.id, kept}}, frame);
  const Partial softmax = b.apply(MapFn::exp, {shifted}, frame);
  return b.apply(MapFn::mul, {place(b.gradient, kept), softmax}, frame);
}

}  // namespace einc
