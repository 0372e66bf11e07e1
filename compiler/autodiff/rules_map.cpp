// SPDX-License-Identifier: Apache-2.0
// Gradients of elementwise functions. y = f(a, b) elementwise, g = dL/dy; each formula is built over the result's axes and
// then summed over those that the operand lacks. Formulas read the result where that saves keeping an operand.
#include <cmath>
#include <initializer_list>
#include <memory>
#include <numbers>
#include <optional>
#include <utility>
#include <vector>

#include "compiler/autodiff/masked.h"
#include "compiler/autodiff/rules.h"

namespace einc {
namespace {

// A value inside one elementwise rule, so that formulas read as formulas. Operators only note what is to be made. Its nodes are made, in an
// order that is written here, when the value is asked for: C++ leaves open which operand of a call comes first, and node ids must not
// depend on the compiler.
class Value {
 public:
  // Both are in use because g++ on x86-64 evaluated operands so when the golden texts of graphs and kernels were written: they stay.
  enum class Order : uint8_t { first_to_last, last_to_first };

  Value(const Backward* at, Partial partial) : at_(at), term_(std::make_shared<Term>(Term{.made = std::move(partial)})) {}
  Value(MapFn fn, std::vector<Value> operands, Order order)
      : at_(operands.front().at_), term_(std::make_shared<Term>(Term{.fn = fn, .order = order, .operands = std::move(operands)})) {}
  Value(const Value& beside, ScalarValue number)
      : at_(beside.at_), term_(std::make_shared<Term>(Term{.number = std::move(number), .operands = {beside}})) {}

  const Backward& at() const { return *at_; }

  const Partial& partial() const {
    Term& t = *term_;
    if (t.made) return *t.made;
    if (t.order == Order::last_to_first)
      for (size_t i = t.operands.size(); i-- > 0;) t.operands[i].partial();
    std::vector<Partial> partials;
    for (const Value& v : t.operands) partials.push_back(v.partial());
    t.made =
        t.number ? Partial{at_->constant(*t.number, partials[0].value), {}} : apply_elementwise(at_->build, t.fn, partials, at_->axes());
    return *t.made;
  }

 private:
  struct Term {
    MapFn fn = MapFn::add;
    std::optional<ScalarValue> number = std::nullopt;  // in place of fn: a constant of the operand's dtype
    Order order = Order::first_to_last;
    std::vector<Value> operands = {};
    std::optional<Partial> made = std::nullopt;
  };

  const Backward* at_;
  std::shared_ptr<Term> term_;
};

Value apply(MapFn fn, std::initializer_list<Value> operands) { return {fn, operands, Value::Order::first_to_last}; }
Value apply_last_first(MapFn fn, std::initializer_list<Value> operands) { return {fn, operands, Value::Order::last_to_first}; }
// A value with a name is made where it gets it.
Value made(const Value& value) {
  value.partial();
  return value;
}
// A number beside a value has the value's dtype.
Value number(const Value& beside, ScalarValue value) { return {beside, std::move(value)}; }
Value number(const Value& beside, int value) { return number(beside, ScalarValue(Poly(value))); }
Value half(const Value& beside) { return number(beside, ScalarValue(Poly(Rational(1, 2)))); }

Value operator+(Value a, Value b) { return apply_last_first(MapFn::add, {a, b}); }
Value operator-(Value a, Value b) { return apply_last_first(MapFn::sub, {a, b}); }
Value operator*(Value a, Value b) { return apply_last_first(MapFn::mul, {a, b}); }
Value operator/(Value a, Value b) { return apply_last_first(MapFn::div, {a, b}); }
Value operator-(Value a) { return apply(MapFn::neg, {a}); }
Value operator+(Value a, int n) { return apply(MapFn::add, {a, number(a, n)}); }
Value operator*(Value a, double n) { return apply(MapFn::mul, {a, number(a, ScalarValue(n))}); }
Value operator-(Value a, int n) { return apply(MapFn::sub, {a, number(a, n)}); }
Value operator-(int n, Value a) { return apply_last_first(MapFn::sub, {number(a, n), a}); }
Value equal(Value a, Value b) { return apply_last_first(MapFn::equal, {a, b}); }
Value greater(Value a, Value b) { return apply_last_first(MapFn::greater, {a, b}); }
Value where(Value c, Value a, Value b) { return apply_last_first(MapFn::where, {c, a, b}); }
Value zero(Value beside) { return number(beside, 0); }

// y = x^c for a number c: dx = c x^(c-1) g. x^0 is 1 everywhere: no gradient, at 0 neither.
std::optional<Value> power_of_constant(Value x, ScalarValue exponent, Value g) {  // a copy: building moves the node it comes from
  if (const Poly* c = std::get_if<Poly>(&exponent)) {
    if (c->is_zero()) return std::nullopt;
    if (c->is_one()) return g;
    const Value scaled = made(g * number(g, *c));
    if (*c == Poly(2)) return scaled * x;
    return scaled * apply(MapFn::pow, {x, number(x, *c - Poly(1))});
  }
  const double c = std::get<double>(exponent);
  if (c == 0) return std::nullopt;
  return g * c * apply(MapFn::pow, {x, number(x, ScalarValue(c - 1))});
}

// y = a^b. da = b a^(b-1) g, 0 where b = 0. db = g y log(a) where a > 0, else 0 (y is 0 or has no real derivative there).
std::optional<Value> power(Value a, Value b, Value y, Value g, int k) {
  if (k == 1) {
    const Value positive = made(greater(a, zero(a)));
    const Value log = made(apply(MapFn::log, {where(positive, a, number(a, 1))}));  // second derivatives stay finite
    return where(positive, g * y * log, zero(g));
  }
  const Node& exponent = g.at().build.graph()[b.partial().value];
  if (exponent.op == Op::constant) return power_of_constant(a, exponent.as<ConstantAttr>().value, g);
  const Value none = made(equal(b, zero(b)));
  return where(none, zero(g), g * b * apply(MapFn::pow, {a, where(none, number(b, 1), b - 1)}));
}

// The larger (smaller) operand takes the gradient, equal ones half each.
Value share_of_extreme(Value winner, Value loser, Value g) {
  return where(greater(winner, loser), g, where(equal(winner, loser), g * half(g), zero(g)));
}

// Phi and phi: distribution and density of the standard normal.
Value normal_distribution(Value x) { return (apply(MapFn::erf, {x * std::numbers::sqrt2 * 0.5}) + 1) * half(x); }
Value normal_density(Value x) {
  return apply(MapFn::exp, {x * x * number(x, ScalarValue(Poly(Rational(-1, 2))))}) * (std::numbers::inv_sqrtpi / std::numbers::sqrt2);
}

// gelu_tanh = x/2 (1 + tanh(u)) = x s with s = sigmoid(2u), u = c (x + k x^3): derivative s (1 + x (1 - s) 2u').
Value gelu_tanh_slope(Value x) {
  const double c = 2 * std::numbers::sqrt2 * std::numbers::inv_sqrtpi, k = 0.044715;
  const Value square = made(x * x), linear = made(number(x, ScalarValue(c)));
  const Value s = made(apply(MapFn::sigmoid, {x * (square * (c * k) + linear)}));
  return s * (x * (1 - s) * (square * (3 * c * k) + linear) + 1);
}

// The derivative of lgamma, as a formula whose own derivatives are exact: psi(z) = psi(z + 8) - 1/z - ... - 1/(z + 7), the asymptotic
// series from 8.5 on (Abramowitz and Stegun 6.3.18; 6e-16 there), and psi(x) = psi(1 - x) - pi / tan(pi x) below 1/2.
Value digamma(Value x) {
  const auto fraction = [&](int64_t a, int64_t b) { return number(x, ScalarValue(Poly(Rational(a, b)))); };
  const Value reflected = made(greater(half(x), x)), z = made(where(reflected, 1 - x, x)), w = made(z + 8);
  Value shifts = made(number(x, 1) / z);
  for (int k = 1; k < 8; ++k) shifts = made(shifts + number(x, 1) / (z + k));
  const Value v = made(number(x, 1) / (w * w));
  Value series = made(fraction(1, 12));  // B_2k / (2k) for k = 7 down to 1
  for (const auto& [a, b] : {std::pair{-691, 32760}, {1, 132}, {-1, 240}, {1, 252}, {-1, 120}, {1, 12}})
    series = made(series * v + fraction(a, b));
  const Value above = made(apply(MapFn::log, {w}) - half(x) / w - series * v - shifts);
  // A quarter where it is not asked for: the tangent stays finite in all derivatives.
  const Value turn = made(where(reflected, x - apply(MapFn::round, {x}), fraction(1, 4)));
  const Value tangent = made(apply(MapFn::tan, {turn * std::numbers::pi}));
  return where(reflected, above - number(x, ScalarValue(std::numbers::pi)) / tangent, above);
}

// The second operand of - and / has a gradient with a minus, which is set after the sum over axes that the operand lacks.
bool is_negated(MapFn fn, int k) { return k == 1 && (fn == MapFn::sub || fn == MapFn::div); }

std::optional<Value> binary(MapFn fn, Value a, Value b, Value y, Value g, int k) {
  switch (fn) {
    case MapFn::add:
      return g;  // da = g, db = g
    case MapFn::sub:
      return g;  // da = g, db = -g
    case MapFn::mul:
      return g * (k == 0 ? b : a);  // da = g b, db = g a
    case MapFn::div:
      return k == 0 ? g / b : g / b * y;  // da = g/b, db = -(g/b) y
    case MapFn::pow:
      return power(a, b, y, g, k);
    case MapFn::maximum:
      return k == 0 ? share_of_extreme(a, b, g) : share_of_extreme(b, a, g);
    case MapFn::minimum:
      return k == 0 ? share_of_extreme(b, a, g) : share_of_extreme(a, b, g);
    case MapFn::atan2: {  // the angle of (b, a): da = g b / (a^2 + b^2), db = -g a / (a^2 + b^2); at the origin 0
      const Value square = made(a * a + b * b);
      const Value by_square = made(g / where(equal(square, zero(square)), number(square, 1), square));
      return k == 0 ? by_square * b : -(by_square * a);
    }
    case MapFn::equal:
    case MapFn::not_equal:
    case MapFn::less:
    case MapFn::less_equal:
    case MapFn::greater:
    case MapFn::greater_equal:
    case MapFn::logical_and:
    case MapFn::logical_or:
    case MapFn::logical_not:
    case MapFn::where:
    case MapFn::neg:
    case MapFn::abs:
    case MapFn::sign:
    case MapFn::relu:
    case MapFn::exp:
    case MapFn::expm1:
    case MapFn::log:
    case MapFn::log1p:
    case MapFn::sqrt:
    case MapFn::rsqrt:
    case MapFn::sin:
    case MapFn::cos:
    case MapFn::tanh:
    case MapFn::sigmoid:
    case MapFn::erf:
    case MapFn::gelu:
    case MapFn::gelu_tanh:
    case MapFn::silu:
    case MapFn::softplus:
    case MapFn::floor_div:
    case MapFn::remainder:
    case MapFn::clamp:
    case MapFn::floor:
    case MapFn::ceil:
    case MapFn::round:
    case MapFn::trunc:
    case MapFn::tan:
    case MapFn::asin:
    case MapFn::acos:
    case MapFn::atan:
    case MapFn::sinh:
    case MapFn::cosh:
    case MapFn::erfc:
    case MapFn::erfinv:
    case MapFn::lgamma:
      break;
  }
  return std::nullopt;
}

std::optional<Value> unary(MapFn fn, Value x, Value y, Value g) {
  switch (fn) {
    case MapFn::neg:
      return -g;
    case MapFn::abs:
      return g * apply(MapFn::sign, {x});  // 0 at 0
    case MapFn::relu:
      return where(greater(y, zero(y)), g, zero(g));  // 0 at 0
    case MapFn::exp:
      return g * y;
    case MapFn::expm1:
      return g * (y + 1);
    case MapFn::log:
      return g / x;
    case MapFn::log1p:
      return g / (x + 1);
    case MapFn::sqrt:
      return g * half(g) / y;  // g/(2y): infinite at 0, where the slope is
    case MapFn::rsqrt:
      return g * number(g, ScalarValue(Poly(Rational(-1, 2)))) * (y * y * y);  // -g y^3/2
    case MapFn::sin:
      return g * apply(MapFn::cos, {x});
    case MapFn::cos:
      return -(g * apply(MapFn::sin, {x}));
    case MapFn::tanh:
      return g * (1 - y * y);
    case MapFn::sigmoid:
      return g * (y * (1 - y));
    case MapFn::erf:
      return g * (apply(MapFn::exp, {-(x * x)}) * (2 * std::numbers::inv_sqrtpi));  // 2/sqrt(pi) exp(-x^2)
    case MapFn::gelu:
      return g * (normal_distribution(x) + x * normal_density(x));  // (x Phi(x))' = Phi + x phi
    case MapFn::gelu_tanh:
      return g * gelu_tanh_slope(x);
    case MapFn::silu: {  // (x s)' = s + x s (1 - s) = s (1 + x (1 - s))
      const Value s = made(apply(MapFn::sigmoid, {x}));
      return g * (s * (x * (1 - s) + 1));
    }
    case MapFn::softplus:
      return g * apply(MapFn::sigmoid, {x});
    case MapFn::tan:
      return g * (y * y + 1);
    case MapFn::asin:
      return g * apply(MapFn::rsqrt, {(1 - x) * (x + 1)});  // 1/sqrt(1 - x^2), exact beside 1
    case MapFn::acos:
      return -(g * apply(MapFn::rsqrt, {(1 - x) * (x + 1)}));
    case MapFn::atan:
      return g / (x * x + 1);
    case MapFn::sinh:
      return g * apply(MapFn::cosh, {x});
    case MapFn::cosh:
      return g * apply(MapFn::sinh, {x});
    case MapFn::erfc:
      return g * (apply(MapFn::exp, {-(x * x)}) * (-2 * std::numbers::inv_sqrtpi));
    case MapFn::erfinv:
      return g * (apply(MapFn::exp, {y * y}) * (0.5 / std::numbers::inv_sqrtpi));  // 1 / erf'(y)
    case MapFn::lgamma:
      return g * digamma(x);
    case MapFn::sign:
    case MapFn::logical_not:
    case MapFn::add:
    case MapFn::sub:
    case MapFn::mul:
    case MapFn::div:
    case MapFn::pow:
    case MapFn::minimum:
    case MapFn::maximum:
    case MapFn::equal:
    case MapFn::not_equal:
    case MapFn::less:
    case MapFn::less_equal:
    case MapFn::greater:
    case MapFn::greater_equal:
    case MapFn::logical_and:
    case MapFn::logical_or:
    case MapFn::where:
    case MapFn::floor_div:
    case MapFn::remainder:
    case MapFn::clamp:
    case MapFn::floor:
    case MapFn::ceil:
    case MapFn::round:
    case MapFn::trunc:
    case MapFn::atan2:
      break;
  }
  return std::nullopt;
}

// y = min(max(x, low), high): x has slope 1 within and at the bounds, a bound where it is y and x lies beyond.
std::optional<Value> clamped(Value x, Value low, Value high, Value g, int k) {
  const auto either = [](Value a, Value b) { return apply_last_first(MapFn::logical_or, {a, b}); };
  const Value below = made(greater(low, x)), above = made(greater(x, high)), crossed = made(greater(low, high));
  if (k == 0) return where(either(below, above), zero(g), g);
  if (k == 1) return where(crossed, zero(g), where(below, g, zero(g)));
  return where(either(above, crossed), g, zero(g));
}

}  // namespace

namespace {

// The formula over the result's axes, for an upstream gradient g.
std::optional<Value> formula(const Backward& b, Value g, int k) {
  const MapAttr& attr = b.attr<MapAttr>();
  const auto operand = [&](int i) { return Value{&b, {b.operand(i), attr.maps[static_cast<size_t>(i)]}}; };
  const Value y{&b, b.whole(b.id)};
  if (attr.fn == MapFn::where)  // an exact 0 to the branch not taken, even beside inf and nan
    return k == 1 ? where(operand(0), g, zero(g)) : where(operand(0), zero(g), g);
  if (attr.fn == MapFn::clamp) return clamped(operand(0), operand(1), operand(2), g, k);
  if (attr.fn == MapFn::mul && b.operand(0) == b.operand(1) && attr.maps[0] == attr.maps[1])  // x x: dx = 2 g x, once
    return k == 0 ? std::optional(g * number(g, 2) * operand(0)) : std::nullopt;
  if (b.node.operands.size() == 2) return binary(attr.fn, operand(0), operand(1), y, g, k);
  return unary(attr.fn, operand(0), y, g);
}

bool lie_within(const std::vector<GradientMask>& masks, const AxisList& axes) {
  for (const GradientMask& mask : masks)
    for (int axis : mask.condition.axes)
      if (!axes.contains(axis)) return false;
  return true;
}

}  // namespace

std::optional<Partial> gradient_of_map(const Backward& b, int k) {
  const MapAttr& attr = b.attr<MapAttr>();
  const AxisList& map = attr.maps[static_cast<size_t>(k)];
  const std::vector<Axis> frame = b.operand_type(k).axes;
  const auto finish = [&](const Partial& value) {
    const Partial sum = b.sum_to(value, map, b.axes());
    return is_negated(attr.fn, k) ? b.apply(MapFn::neg, {sum}, frame) : sum;
  };
  Masked masked{b.gradient, {}};
  if (attr.fn != MapFn::where) masked = take_off_masks(b.build.graph(), b.gradient);
  const auto result = formula(b, Value{&b, masked.value}, k);
  if (!result) return std::nullopt;
  if (masked.masks.empty()) return finish(result->partial());
  const bool passed_on = result->partial().value == masked.value.value && !is_negated(attr.fn, k);
  if (passed_on && map.size() == static_cast<int>(b.axes().size())) return finish(b.gradient);
  if (!lie_within(masked.masks, map)) return finish(put_on_masks(b.build, result->partial(), masked.masks, b.axes()));
  for (GradientMask& mask : masked.masks) {
    AxisList axes;
    for (int axis : mask.condition.axes) axes.push_back(map.find(axis));
    mask.condition.axes = axes;
  }
  return put_on_masks(b.build, finish(result->partial()), masked.masks, frame);
}

}  // namespace einc
