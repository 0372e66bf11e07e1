// SPDX-License-Identifier: Apache-2.0
// Interval arithmetic in f64 (Moore, "Interval Analysis"). Each result is widened by what rounding to the op's dtype may add, and what is
// below the smallest normal number may be flushed to zero.
#include "runtime/program/update_bounds.h"

#include <algorithm>
#include <cmath>

namespace einc {
namespace {

constexpr Interval kTruth{0, 1};

Interval hull(Interval a, Interval b) { return {std::min(a.low, b.low), std::max(a.high, b.high)}; }
Interval of_truth(bool always, bool never) { return always ? Interval::point(1) : never ? Interval::point(0) : kTruth; }
bool is_true(Interval x) { return x.low > 0 || x.high < 0; }
bool is_false(Interval x) { return x == Interval::point(0); }

Interval corners(Interval a, Interval b, auto fn) {
  const double x[] = {fn(a.low, b.low), fn(a.low, b.high), fn(a.high, b.low), fn(a.high, b.high)};
  if (std::any_of(std::begin(x), std::end(x), [](double v) { return std::isnan(v); })) return {};
  return {*std::min_element(std::begin(x), std::end(x)), *std::max_element(std::begin(x), std::end(x))};
}

Interval square(Interval x) {
  const double least = x.low <= 0 && x.high >= 0 ? 0 : std::min(std::fabs(x.low), std::fabs(x.high));
  const double most = std::max(std::fabs(x.low), std::fabs(x.high));
  return {least * least, most * most};
}

Interval power(Interval x, Interval p) {
  if (p == Interval::point(2)) return square(x);
  const bool positive = x.low > 0 || (x.low == 0 && p.low > 0);
  return positive ? corners(x, p, [](double a, double b) { return std::pow(a, b); }) : Interval{};
}

// Of a function that grows.
Interval growing(Interval x, auto fn) { return {fn(x.low), fn(x.high)}; }

Interval wave(Interval x, auto fn) { return x.low == x.high ? Interval::point(fn(x.low)) : Interval::within(1); }

// A fn of bounded operands. `a` and `b` are one value where `same` says so.
Interval apply(BoundFn fn, Interval a, Interval b, bool same) {
  switch (fn) {
    case BoundFn::constant:
    case BoundFn::between:
    case BoundFn::number:
    case BoundFn::magnitude:
    case BoundFn::source:
    case BoundFn::unknown:
    case BoundFn::where:
      return {};
    case BoundFn::add:
      return {a.low + b.low, a.high + b.high};
    case BoundFn::sub:
      return {a.low - b.high, a.high - b.low};
    case BoundFn::mul:
      return same ? square(a) : corners(a, b, [](double x, double y) { return x * y; });
    case BoundFn::div:
      return b.low > 0 || b.high < 0 ? corners(a, b, [](double x, double y) { return x / y; }) : Interval{};
    case BoundFn::pow:
      return power(a, b);
    case BoundFn::minimum:
      return {std::min(a.low, b.low), std::min(a.high, b.high)};
    case BoundFn::maximum:
      return {std::max(a.low, b.low), std::max(a.high, b.high)};
    case BoundFn::equal:
      return of_truth(a.low == a.high && a == b, a.high < b.low || b.high < a.low);
    case BoundFn::not_equal:
      return of_truth(a.high < b.low || b.high < a.low, a.low == a.high && a == b);
    case BoundFn::less:
      return of_truth(a.high < b.low, a.low >= b.high);
    case BoundFn::less_equal:
      return of_truth(a.high <= b.low, a.low > b.high);
    case BoundFn::greater:
      return of_truth(a.low > b.high, a.high <= b.low);
    case BoundFn::greater_equal:
      return of_truth(a.low >= b.high, a.high < b.low);
    case BoundFn::logical_and:
      return of_truth(is_true(a) && is_true(b), is_false(a) || is_false(b));
    case BoundFn::logical_or:
      return of_truth(is_true(a) || is_true(b), is_false(a) && is_false(b));
    case BoundFn::logical_not:
      return of_truth(is_false(a), is_true(a));
    case BoundFn::neg:
      return {-a.high, -a.low};
    case BoundFn::abs:
      return growing(square(a), [](double x) { return std::sqrt(x); });
    case BoundFn::sign:
      return Interval::within(1);
    case BoundFn::relu:
      return growing(a, [](double x) { return std::max(x, 0.0); });
    case BoundFn::exp:
      return growing(a, [](double x) { return std::exp(x); });
    case BoundFn::expm1:
      return growing(a, [](double x) { return std::expm1(x); });
    case BoundFn::log:
      return a.low > 0 ? growing(a, [](double x) { return std::log(x); }) : Interval{};
    case BoundFn::log1p:
      return a.low > -1 ? growing(a, [](double x) { return std::log1p(x); }) : Interval{};
    case BoundFn::sqrt:
      return a.low >= 0 ? growing(a, [](double x) { return std::sqrt(x); }) : Interval{};
    case BoundFn::rsqrt:
      return a.low > 0 ? Interval{1 / std::sqrt(a.high), 1 / std::sqrt(a.low)} : Interval{};
    case BoundFn::sin:
      return wave(a, [](double x) { return std::sin(x); });
    case BoundFn::cos:
      return wave(a, [](double x) { return std::cos(x); });
    case BoundFn::tanh:
    case BoundFn::erf:
      return Interval::within(1);
    case BoundFn::sigmoid:
      return kTruth;
    case BoundFn::gelu:
    case BoundFn::gelu_tanh:
    case BoundFn::silu:
      return {-1, std::max(a.high, 0.0)};  // the least of silu is -0.28, of gelu -0.17
    case BoundFn::softplus:
      return {0, std::max(a.high, 0.0) + 1};
    case BoundFn::clamp:
    case BoundFn::floor_div:
    case BoundFn::remainder:
    case BoundFn::tan:
    case BoundFn::erfinv:
    case BoundFn::lgamma:
      return {};
    case BoundFn::floor:
      return growing(a, [](double x) { return std::floor(x); });
    case BoundFn::ceil:
      return growing(a, [](double x) { return std::ceil(x); });
    case BoundFn::round:
      return growing(a, [](double x) { return std::nearbyint(x); });
    case BoundFn::trunc:
      return growing(a, [](double x) { return std::trunc(x); });
    case BoundFn::asin:
    case BoundFn::acos:
      return a.low >= -1 && a.high <= 1 ? Interval::within(4) : Interval{};
    case BoundFn::atan:
    case BoundFn::atan2:
      return Interval::within(4);
    case BoundFn::sinh:
      return growing(a, [](double x) { return std::sinh(x); });
    case BoundFn::cosh:
      return {1, std::cosh(std::max(std::fabs(a.low), std::fabs(a.high)))};
    case BoundFn::erfc:
      return {0, 2};
    case BoundFn::cast:
      return a;
  }
  return {};
}

const DTypeInfo& format_of(DType dtype) { return info(dtype == DType::real ? DType::f32 : dtype); }

// A magnitude may be a bound of its own, larger than what elements can be.
Interval held(Interval x, DType dtype) {
  const double largest = is_floating(dtype) ? format_of(dtype).largest : std::numeric_limits<double>::max();
  return x.low >= -largest && x.high <= largest ? x : Interval{};
}

Interval rounded(Interval x, DType dtype) {
  if (!is_floating(dtype)) return x;
  const DTypeInfo& format = format_of(dtype);
  const double part = 4 * format.epsilon;  // elementary functions are off by a few units in the last place
  x = {x.low - part * std::fabs(x.low), x.high + part * std::fabs(x.high)};
  if (x.low > 0 && x.low < format.smallest_normal) x.low = 0;
  if (x.high < 0 && x.high > -format.smallest_normal) x.high = 0;
  return held(x, dtype);
}

}  // namespace

std::vector<Interval> evaluate_bounds(std::span<const BoundOp> ops, std::span<const Interval> leaves) {
  std::vector<Interval> results(ops.size());
  for (size_t i = 0; i < ops.size(); ++i) {
    const BoundOp& op = ops[i];
    const Interval a = results[op.operands[0]], b = results[op.operands[1]], c = results[op.operands[2]];
    Interval& result = results[i];
    switch (op.fn) {
      case BoundFn::constant:
        result = Interval::point(op.value);
        continue;
      case BoundFn::between:
        result = Interval::within(op.value);
        continue;
      case BoundFn::number:
      case BoundFn::magnitude:
      case BoundFn::source:
        result = held(leaves[i], op.dtype);
        continue;
      case BoundFn::where:
        result = is_true(a) ? b : is_false(a) ? c : hull(b, c);
        continue;
      case BoundFn::clamp:
        if (a.is_bounded() && b.is_bounded() && c.is_bounded())
          result = rounded(apply(BoundFn::minimum, apply(BoundFn::maximum, a, b, false), c, false), op.dtype);
        continue;
      default:
        break;
    }
    const bool binary = (op.fn >= BoundFn::add && op.fn <= BoundFn::logical_or) || op.fn == BoundFn::atan2;
    const int arity = binary ? 2 : 1;
    if (op.fn == BoundFn::unknown || !a.is_bounded() || (arity == 2 && !b.is_bounded())) continue;
    result = rounded(apply(op.fn, a, b, op.operands[0] == op.operands[1]), op.dtype);
  }
  return results;
}

}  // namespace einc
