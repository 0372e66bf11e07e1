// SPDX-License-Identifier: Apache-2.0
// Gradients of running reductions. y_j reduces x_0 ... x_j (or x_j ... x_n, of the other direction), so that x_i answers for all y_j from
// i on: sums run back from the other end.
#include <limits>

#include "compiler/autodiff/rules.h"

namespace einc {
namespace {

class Cumulated {
 public:
  explicit Cumulated(const Backward& b) : b_(b), attr_(b.attr<CumulateAttr>()) {}

  // dx = running sum of g from the other end.
  Partial sum() const {
    const int wanted[] = {attr_.axis};
    const Partial g = b_.with_axes(wanted);
    return {b_.build.cumulate(ReduceFn::sum, g.value, g.axes.find(attr_.axis), other()), g.axes};
  }

  // dx_i = sum over j from i on of g_j times the product up to j of the other elements. That is P_j / x_i Z, P the product of the elements
  // other than 0 and Z that of the zeros among the others, as in the rule of prod: 1 if there is none; their sum S if there is one, which
  // has the value 0 but a slope, so that second derivatives are exact at zeros too; else 0.
  Partial prod() const {
    const Partial x = b_.whole(b_.operand(0)), g = b_.whole(b_.full_gradient());
    const Partial zero = number(0), one = number(1);
    const Partial is_zero = apply(MapFn::equal, x, zero), filled = where(is_zero, one, x);
    const Partial zeros = along(ReduceFn::sum, {b_.build.cast(is_zero.value, b_.build.type(x.value).dtype), is_zero.axes});
    const Partial sum = along(ReduceFn::sum, where(is_zero, x, zero));
    const Partial weighted = apply(MapFn::mul, g, along(ReduceFn::prod, filled));
    const Partial none = apply(MapFn::equal, zeros, zero), single = apply(MapFn::equal, zeros, one),
                  two = apply(MapFn::equal, zeros, number(2));
    const Partial of_others = where(none, weighted, where(single, apply(MapFn::mul, weighted, sum), zero));
    const Partial beside = apply(MapFn::div, back(of_others), filled);
    // Of a zero: it is one of those counted.
    const Partial alone = back(where(single, weighted, zero)), with_another = back(where(two, apply(MapFn::mul, weighted, sum), zero));
    const Partial itself = apply(MapFn::mul, x, back(where(two, weighted, zero)));
    return where(is_zero, apply(MapFn::add, alone, apply(MapFn::sub, with_another, itself)), beside);
  }

  // Each y_j hands g_j to the latest element equal to it: the one where the extreme was last met.
  Partial extreme() const {
    EINC_CHECK(attr_.direction == Direction::forward, "running extremes run forward");
    const Partial x = b_.whole(b_.operand(0));
    const MapFn loses = attr_.fn == ReduceFn::max ? MapFn::less : MapFn::greater;
    const Partial met = apply(MapFn::logical_not, {apply(loses, x, b_.whole(b_.id))});  // of NaN, too
    const NodeId count = b_.build.iota(b_.axes()[static_cast<size_t>(attr_.axis)], DType::i64);
    const Partial place = where(met, Partial{count, {attr_.axis}}, Partial{b_.build.constant(Poly(0), DType::i64), {}});
    const NodeId latest = b_.build.cumulate(ReduceFn::max, place.value, attr_.axis, Direction::forward);
    const int rank = b_.node.type.rank();
    GatherAttr gather{attr_.axis, AxisList::range(rank), AxisList::range(rank)};
    gather.table_map.set(attr_.axis, kNoAxis);
    return b_.whole(b_.build.scatter_add(b_.full_gradient(), latest, gather, b_.axes()));
  }

  // dx_i = sum over j from i on of g_j e^(x_i - y_j), in logarithms, since y_j may lie far above x_i: positive and negative g apart. (A g
  // that is 0 has no slope of its own here.)
  Partial logsumexp() const {
    const Partial g = b_.whole(b_.full_gradient());
    return apply(MapFn::sub, share(g), share(apply(MapFn::neg, {g})));
  }

 private:
  Direction other() const { return attr_.direction == Direction::forward ? Direction::reverse : Direction::forward; }

  Partial apply(MapFn fn, const Partial& a, const Partial& c) const { return b_.apply(fn, {a, c}, b_.axes()); }
  Partial apply(MapFn fn, std::initializer_list<Partial> operands) const { return b_.apply(fn, operands, b_.axes()); }
  Partial where(const Partial& c, const Partial& yes, const Partial& no) const { return apply(MapFn::where, {c, yes, no}); }
  Partial number(int value) const { return {b_.constant(Poly(value), b_.operand(0)), {}}; }
  Partial along(ReduceFn fn, const Partial& x) const { return b_.whole(b_.build.cumulate(fn, x.value, attr_.axis, attr_.direction)); }
  Partial back(const Partial& x) const { return b_.whole(b_.build.cumulate(ReduceFn::sum, x.value, attr_.axis, other())); }

  // Where g is positive and y is no logarithm of 0: e^(x + running log-sum of (log g - y)); the other terms are e^-inf.
  Partial share(const Partial& g) const {
    const Partial lowest{b_.constant(-std::numeric_limits<double>::infinity(), b_.operand(0)), {}};
    const Partial y = b_.whole(b_.id), positive = apply(MapFn::greater, g, number(0));
    const Partial counts = apply(MapFn::logical_and, positive, apply(MapFn::greater, y, lowest));
    const Partial log = apply(MapFn::log, {where(positive, g, number(1))});
    const Partial terms = where(counts, apply(MapFn::sub, log, y), lowest);
    const Partial total = b_.whole(b_.build.cumulate(ReduceFn::logsumexp, terms.value, attr_.axis, other()));
    return apply(MapFn::exp, {apply(MapFn::add, b_.whole(b_.operand(0)), total)});
  }

  const Backward& b_;
  const CumulateAttr attr_;
};

}  // namespace

std::optional<Partial> gradient_of_cumulate(const Backward& b, int) {
  const Cumulated rule(b);
  switch (b.attr<CumulateAttr>().fn) {
    case ReduceFn::sum:
      return rule.sum();
    case ReduceFn::prod:
      return rule.prod();
    case ReduceFn::max:
    case ReduceFn::min:
      return rule.extreme();
    case ReduceFn::logsumexp:
      return rule.logsumexp();
    case ReduceFn::any:
    case ReduceFn::all:
      break;
  }
  return std::nullopt;
}

}  // namespace einc
