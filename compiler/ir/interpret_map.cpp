// SPDX-License-Identifier: Apache-2.0
// Elementwise functions of the interpreter, by their formulas.
#include <cmath>
#include <limits>

#include "compiler/ir/interpret_ops.h"
#include "compiler/ir/map_value.h"
#include "compiler/ir/print.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

constexpr double kInverseSqrt2 = 0.70710678118654752440;
constexpr double kSqrt2OverPi = 0.79788456080286535588;
constexpr double kInverseRootPi = 0.56418958354775628695;

double sigmoid(double x) { return x >= 0 ? 1 / (1 + std::exp(-x)) : std::exp(x) / (1 + std::exp(x)); }
double softplus(double x) { return std::fmax(x, 0) + std::log1p(std::exp(-std::fabs(x))); }

double minimum(double a, double b) { return std::isnan(a) || a < b ? a : b; }
double maximum(double a, double b) { return std::isnan(a) || a > b ? a : b; }

// From Winitzki's formula (2008, within 2e-3 of it), by steps of Halley on erf - x, or on what both lack to 1 where that is less.
double inverse_erf(double x) {
  const double a = std::fabs(x);
  if (!(a < 1)) return a == 1 ? std::copysign(std::numeric_limits<double>::infinity(), x) : std::numeric_limits<double>::quiet_NaN();
  if (a < 1e-8) return x * (0.5 / kInverseRootPi);  // the next term is x^3 / 4
  constexpr double kShape = 0.147;
  const double log = std::log1p(-a * a), middle = 2 * kInverseRootPi * kInverseRootPi / kShape + log / 2;
  double y = std::sqrt(std::sqrt(middle * middle - log / kShape) - middle);
  for (int step = 0; step < 4; ++step) {
    const double off = a < 0.5 ? std::erf(y) - a : (1 - a) - std::erfc(y);
    const double by_slope = off * std::exp(y * y) * (0.5 / kInverseRootPi);
    y -= by_slope / (1 + y * by_slope);
  }
  return std::copysign(y, x);
}

}  // namespace

double map_value(MapFn fn, double a, double b, double c) {
  switch (fn) {
    case MapFn::add:
      return a + b;
    case MapFn::sub:
      return a - b;
    case MapFn::mul:
      return a * b;
    case MapFn::div:
      return a / b;
    case MapFn::pow:
      return std::pow(a, b);
    case MapFn::minimum:
      return minimum(a, b);
    case MapFn::maximum:
      return maximum(a, b);
    case MapFn::where:
      return a != 0 ? b : c;
    case MapFn::neg:
      return -a;
    case MapFn::abs:
      return std::fabs(a);
    case MapFn::sign:
      return std::isnan(a) ? a : (a > 0) - (a < 0);
    case MapFn::relu:
      return a < 0 ? 0 : a;
    case MapFn::exp:
      return std::exp(a);
    case MapFn::expm1:
      return std::expm1(a);
    case MapFn::log:
      return std::log(a);
    case MapFn::log1p:
      return std::log1p(a);
    case MapFn::sqrt:
      return std::sqrt(a);
    case MapFn::rsqrt:
      return 1 / std::sqrt(a);
    case MapFn::sin:
      return std::sin(a);
    case MapFn::cos:
      return std::cos(a);
    case MapFn::tanh:
      return std::tanh(a);
    case MapFn::sigmoid:
      return sigmoid(a);
    case MapFn::erf:
      return std::erf(a);
    case MapFn::gelu:
      return 0.5 * a * std::erfc(-a * kInverseSqrt2);
    case MapFn::gelu_tanh:
      return 0.5 * a * (1 + std::tanh(kSqrt2OverPi * (a + 0.044715 * a * a * a)));
    case MapFn::silu:
      return a * sigmoid(a);
    case MapFn::softplus:
      return std::isnan(a) ? a : softplus(a);
    case MapFn::clamp:
      return minimum(maximum(a, b), c);
    case MapFn::floor:
      return std::floor(a);
    case MapFn::ceil:
      return std::ceil(a);
    case MapFn::round:
      return std::nearbyint(a);  // ties to even, in the mode that every thread starts in
    case MapFn::trunc:
      return std::trunc(a);
    case MapFn::tan:
      return std::tan(a);
    case MapFn::asin:
      return std::asin(a);
    case MapFn::acos:
      return std::acos(a);
    case MapFn::atan:
      return std::atan(a);
    case MapFn::atan2:
      return std::atan2(a, b);
    case MapFn::sinh:
      return std::sinh(a);
    case MapFn::cosh:
      return std::cosh(a);
    case MapFn::erfc:
      return std::erfc(a);
    case MapFn::erfinv:
      return inverse_erf(a);
    case MapFn::lgamma: {
      int sign = 0;  // lgamma writes its own to a variable that threads share
      return lgamma_r(a, &sign);
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
    case MapFn::floor_div:
    case MapFn::remainder:
      break;
  }
  EINC_CHECK(false, "{} gives no floating number", to_string(fn));
  return 0;
}

namespace {

int64_t integer_power(int64_t base, int64_t exponent) {
  EINC_CHECK(exponent >= 0, "integer power with exponent {}", exponent);
  uint64_t result = 1, square = static_cast<uint64_t>(base);
  for (; exponent > 0; exponent /= 2, square *= square)
    if (exponent % 2 == 1) result *= square;
  return static_cast<int64_t>(result);
}

// Toward -infinity, as Python's //. The least integer over -1 wraps, as sums do.
int64_t floor_divide(int64_t a, int64_t b) {
  EINC_CHECK(b != 0, "a division by 0 is a failure of the run");
  if (b == -1) return static_cast<int64_t>(-static_cast<uint64_t>(a));
  return a / b - (a % b != 0 && (a < 0) != (b < 0) ? 1 : 0);
}

}  // namespace

static_assert(std::numeric_limits<long double>::digits >= 64, "comparisons of i64 with f64 are exact");

bool map_comparison(MapFn fn, long double a, long double b) {
  EINC_CHECK(is_comparison(fn), "{} compares nothing", to_string(fn));
  if (fn == MapFn::equal) return a == b;
  if (fn == MapFn::not_equal) return a != b;
  if (fn == MapFn::less) return a < b;
  if (fn == MapFn::less_equal) return a <= b;
  if (fn == MapFn::greater) return a > b;
  return a >= b;
}

int64_t map_integer(MapFn fn, int64_t a, int64_t b, int64_t c) {
  const auto ua = static_cast<uint64_t>(a), ub = static_cast<uint64_t>(b);
  switch (fn) {
    case MapFn::add:
      return static_cast<int64_t>(ua + ub);
    case MapFn::sub:
      return static_cast<int64_t>(ua - ub);
    case MapFn::mul:
      return static_cast<int64_t>(ua * ub);
    case MapFn::pow:
      return integer_power(a, b);
    case MapFn::minimum:
      return std::min(a, b);
    case MapFn::maximum:
      return std::max(a, b);
    case MapFn::where:
      return a != 0 ? b : c;
    case MapFn::neg:
      return static_cast<int64_t>(-ua);
    case MapFn::abs:
      return a < 0 ? static_cast<int64_t>(-ua) : a;
    case MapFn::sign:
      return (a > 0) - (a < 0);
    case MapFn::relu:
      return std::max<int64_t>(a, 0);
    case MapFn::floor_div:
      return floor_divide(a, b);
    case MapFn::remainder:
      return b == -1 ? 0 : a % b + (a % b != 0 && (a < 0) != (b < 0) ? b : 0);
    case MapFn::clamp:
      return std::min(std::max(a, b), c);
    case MapFn::floor:
    case MapFn::ceil:
    case MapFn::round:
    case MapFn::trunc:
      return a;
    case MapFn::equal:
    case MapFn::not_equal:
    case MapFn::less:
    case MapFn::less_equal:
    case MapFn::greater:
    case MapFn::greater_equal:
      return map_comparison(fn, static_cast<long double>(a), static_cast<long double>(b));
    case MapFn::logical_and:
      return a != 0 && b != 0;
    case MapFn::logical_or:
      return a != 0 || b != 0;
    case MapFn::logical_not:
      return a == 0;
    case MapFn::div:
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
    case MapFn::tan:
    case MapFn::asin:
    case MapFn::acos:
    case MapFn::atan:
    case MapFn::atan2:
    case MapFn::sinh:
    case MapFn::cosh:
    case MapFn::erfc:
    case MapFn::erfinv:
    case MapFn::lgamma:
      break;
  }
  EINC_CHECK(false, "{} gives no integer", to_string(fn));
  return 0;
}

namespace {

// Visits result and operand offsets; operands that do not exist stay at 0.
template <class Visit>
void walk_operands(Evaluation& e, Visit visit) {
  const MapAttr& attr = e.node.as<MapAttr>();
  const uint64_t transcendental = is_transcendental(attr.fn) ? 1 : 0;
  std::array<std::vector<int64_t>, 4> strides;
  strides.fill(std::vector<int64_t>(e.out.shape.size(), 0));
  strides[0] = row_major_strides(e.out.shape);
  for (size_t k = 0; k < e.in.size(); ++k) {
    const std::vector<int64_t> own = row_major_strides(e.in[k]->shape);
    for (size_t i = 0; i < own.size(); ++i) strides[k + 1][static_cast<size_t>(attr.maps[k][static_cast<int>(i)])] += own[i];
  }
  walk<4>(e.out.shape, strides, {}, [&](const std::array<int64_t, 4>& at) {
    visit(at);
    ++e.counts.elementwise;
    e.counts.transcendental += transcendental;
  });
}

void map_reals(Evaluation& e) {
  const MapFn fn = e.node.as<MapAttr>().fn;
  constexpr double kNothing = 0;
  std::array<std::vector<double>, 3> storage;
  std::array<const double*, 3> x{&kNothing, &kNothing, &kNothing};
  for (size_t k = 0; k < e.in.size(); ++k) x[k] = as_reals(*e.in[k], storage[k]);
  double* out = e.out.reals.data();
  walk_operands(e, [&](const std::array<int64_t, 4>& at) { out[at[0]] = map_value(fn, x[0][at[1]], x[1][at[2]], x[2][at[3]]); });
}

[[noreturn]] void division_by_zero(const Evaluation& e, int64_t index) {
  const std::string divisor = describe_node(e.graph, e.node.operands[1]);
  throw FaultyElement(fmt::format("division by zero: '{}' at {} is 0{}", divisor, describe_position(e.in[1]->shape, index),
                                  describe_location(e.node.origin.location)),
                      divisor, index, e.options.iterations);
}

void map_integers(Evaluation& e) {
  const MapFn fn = e.node.as<MapAttr>().fn;
  constexpr int64_t kNothing = 0;
  std::array<const int64_t*, 3> x{&kNothing, &kNothing, &kNothing};
  for (size_t k = 0; k < e.in.size(); ++k) {
    EINC_CHECK(!e.in[k]->is_real(), "{}: an integer result of a floating operand", to_string(fn));
    x[k] = e.in[k]->ints.data();
  }
  int64_t* out = e.out.ints.data();
  walk_operands(e, [&](const std::array<int64_t, 4>& at) {
    if (divides_integers(fn) && x[1][at[2]] == 0) division_by_zero(e, at[2]);
    out[at[0]] = wrap_integer(e.out.dtype, map_integer(fn, x[0][at[1]], x[1][at[2]], x[2][at[3]]));
  });
}

void compare_reals(Evaluation& e) {
  const MapFn fn = e.node.as<MapAttr>().fn;
  const Tensor &a = *e.in[0], &b = *e.in[1];
  const auto exact = [](const Tensor& t, int64_t i) {
    return t.is_real() ? static_cast<long double>(t.reals[static_cast<size_t>(i)])
                       : static_cast<long double>(t.ints[static_cast<size_t>(i)]);
  };
  walk_operands(e, [&](const std::array<int64_t, 4>& at) {
    e.out.ints[static_cast<size_t>(at[0])] = map_comparison(fn, exact(a, at[1]), exact(b, at[2]));
  });
}

}  // namespace

void evaluate_map(Evaluation& e) {
  if (is_comparison(e.node.as<MapAttr>().fn) && (e.in[0]->is_real() || e.in[1]->is_real())) return compare_reals(e);
  if (e.out.is_real()) return map_reals(e);
  map_integers(e);
}

}  // namespace einc
