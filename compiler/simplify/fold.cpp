#include "compiler/simplify/fold.h"

#include <cmath>
#include <limits>
#include <numbers>

namespace einc {
namespace {

const Poly* poly(const ScalarValue& value) { return std::get_if<Poly>(&value); }

std::optional<double> number(const ScalarValue& value) {
  if (const double* d = std::get_if<double>(&value)) return *d;
  const auto rational = std::get<Poly>(value).as_rational();
  return rational ? std::optional(rational->to_double()) : std::nullopt;
}

// Exact in the dims, or nullopt: then the function is left to numbers.
std::optional<ScalarValue> fold_exact(MapFn fn, const Poly& a, const Poly& b) {
  if (fn == MapFn::add) return a + b;
  if (fn == MapFn::sub) return a - b;
  if (fn == MapFn::mul) return a * b;
  if (fn == MapFn::div && !b.is_zero()) return divide(a, b);
  if (fn != MapFn::pow) return std::nullopt;
  const auto exponent = b.as_integer();
  if (!exponent || *exponent < -8 || *exponent > 8 || (a.is_zero() && *exponent < 0)) return std::nullopt;
  return pow(a, static_cast<int>(*exponent));
}

double normal_distribution(double x) { return 0.5 * (1 + std::erf(x / std::numbers::sqrt2)); }
double gelu_tanh(double x) {
  return 0.5 * x * (1 + std::tanh(std::numbers::sqrt2 * std::numbers::inv_sqrtpi * (x + 0.044715 * x * x * x)));
}

// Of one or two numbers; truth values are 0 and 1.
double evaluate(MapFn fn, double a, double b) {
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
      return a != a ? a : b < a || b != b ? b : a;
    case MapFn::maximum:
      return a != a ? a : b > a || b != b ? b : a;
    case MapFn::equal:
      return a == b;
    case MapFn::not_equal:
      return a != b;
    case MapFn::less:
      return a < b;
    case MapFn::less_equal:
      return a <= b;
    case MapFn::greater:
      return a > b;
    case MapFn::greater_equal:
      return a >= b;
    case MapFn::logical_and:
      return a != 0 && b != 0;
    case MapFn::logical_or:
      return a != 0 || b != 0;
    case MapFn::logical_not:
      return a == 0;
    case MapFn::where:
      break;  // has three operands
    case MapFn::neg:
      return -a;
    case MapFn::abs:
      return std::fabs(a);
    case MapFn::sign:
      return a > 0 ? 1 : a < 0 ? -1 : a;
    case MapFn::relu:
      return a > 0 || a != a ? a : 0;
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
      return 1 / (1 + std::exp(-a));
    case MapFn::erf:
      return std::erf(a);
    case MapFn::gelu:
      return a * normal_distribution(a);
    case MapFn::gelu_tanh:
      return gelu_tanh(a);
    case MapFn::silu:
      return a / (1 + std::exp(-a));
    case MapFn::softplus:
      return a > 0 ? a + std::log1p(std::exp(-a)) : std::log1p(std::exp(a));
  }
  return std::numeric_limits<double>::quiet_NaN();
}

bool foldable(DType dtype) {
  return dtype == DType::real || dtype == DType::f32 || dtype == DType::f64 || dtype == DType::boolean || dtype == DType::i64 ||
         dtype == DType::i32;
}

// Integer dtypes hold integers that fit them; a symbolic value is taken to.
bool fits(const ScalarValue& value, DType dtype) {
  if (is_floating(dtype)) return true;
  const Poly* p = poly(value);
  if (!p) return false;
  if (!p->is_constant()) return p->is_integral();
  const auto n = p->as_integer();
  return n && (dtype == DType::i64 || (*n >= INT32_MIN && *n <= INT32_MAX));
}

std::optional<ScalarValue> fold(MapFn fn, std::span<const ScalarValue> v) {
  const auto first = number(v[0]);
  if (fn == MapFn::where) return first ? std::optional(*first != 0 ? v[1] : v[2]) : std::nullopt;
  if (fn == MapFn::neg)
    if (const Poly* p = poly(v[0])) return -*p;
  if (v.size() == 2 && poly(v[0]) && poly(v[1]))
    if (auto exact = fold_exact(fn, *poly(v[0]), *poly(v[1]))) return exact;
  const auto second = v.size() == 2 ? number(v[1]) : first;
  return first && second ? std::optional<ScalarValue>(evaluate(fn, *first, *second)) : std::nullopt;
}

}  // namespace

ScalarValue exact_value(const ScalarValue& value) {
  const double* d = std::get_if<double>(&value);
  if (!d || (*d == 0 && std::signbit(*d)) || !(std::fabs(*d) < 0x1p31)) return value;
  const double scaled = *d * 0x1p20;
  if (scaled != std::floor(scaled)) return value;
  return Poly(Rational(static_cast<int64_t>(scaled), int64_t{1} << 20));
}

std::optional<ScalarValue> fold_constants(MapFn fn, std::span<const ScalarValue> operands, DType dtype) {
  if (!foldable(dtype)) return std::nullopt;
  std::vector<ScalarValue> exact;
  for (const ScalarValue& v : operands) exact.push_back(exact_value(v));
  auto result = fold(fn, exact);
  if (result) result = exact_value(*result);
  return result && fits(*result, dtype) ? result : std::nullopt;
}

}  // namespace einc
