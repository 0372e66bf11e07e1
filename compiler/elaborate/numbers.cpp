#include "compiler/elaborate/numbers.h"

#include <fmt/format.h>

#include <cmath>
#include <limits>
#include <numbers>

#include "compiler/symbolic/order.h"

namespace einc {
namespace {

using Result = std::variant<Number, NumberFault>;
constexpr int kLargestExponent = 63;    // of an exact power
constexpr int kLargestSumExponent = 8;  // of a sum's

const Poly* as_poly(const Number& number) { return std::get_if<Poly>(&number.value); }

// Formulas stay small; a number that does not is computed by the program.
Result exact(Poly value, bool integer) {
  if (!value.is_small()) return NumberFault::needs_nodes;
  return Number{std::move(value), integer};
}
Number inexact(double value) { return Number{value, false}; }

// The decimal number that a double prints as: 0.02 is 1/50. It rounds back to the same double.
std::optional<Rational> decimal(double value) {
  if (!std::isfinite(value)) return std::nullopt;
  std::string digits;
  int exponent = 0;
  const std::string text = fmt::format("{}", value);
  bool after_point = false;
  for (size_t i = 0; i < text.size(); ++i) {
    if (text[i] == 'e') {
      exponent += std::stoi(text.substr(i + 1));
      break;
    }
    if (text[i] == '.') after_point = true;
    if (text[i] < '0' || text[i] > '9') continue;
    digits += text[i];
    if (after_point) --exponent;
  }
  const Rational magnitude = *Rational::from_digits(digits) * pow(Rational(10), exponent);
  return std::signbit(value) ? -magnitude : magnitude;
}

std::optional<Poly> exact_poly(const Number& number) {
  if (const Poly* poly = as_poly(number)) return *poly;
  if (const auto value = decimal(std::get<double>(number.value))) return Poly(*value);
  return std::nullopt;
}

bool depends_on_dims(const Number& number) { return as_poly(number) != nullptr && !as_poly(number)->is_constant(); }

double apply_binary(MapFn fn, double a, double b) {
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
      return std::isnan(a) || a < b ? a : b;
    case MapFn::maximum:
      return std::isnan(a) || a > b ? a : b;
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
      break;
  }
  internal_error(__FILE__, __LINE__, "not a binary function of numbers");
}

// A divisor that some dims would make 0 is left to the graph, where the quotient is infinite then.
bool never_zero(const Poly& x) { return x.is_constant() ? !x.is_zero() : provably_positive(x) || provably_positive(-x); }

std::optional<Result> exact_power(const Number& base, const Number& exponent) {
  if (as_poly(base) == nullptr || as_poly(exponent) == nullptr) return std::nullopt;
  const auto n = as_poly(exponent)->as_integer();
  const int largest = as_poly(base)->term_count() > 1 ? kLargestSumExponent : kLargestExponent;
  if (!n || *n > largest || *n < -largest) return std::nullopt;
  if (*n < 0 && as_poly(base)->is_zero()) return NumberFault::division_by_zero;
  if (*n < 0 && !never_zero(*as_poly(base))) return NumberFault::needs_nodes;
  return exact(pow(*as_poly(base), static_cast<int>(*n)), base.integer && *n >= 0);
}

Result fold_binary(MapFn fn, const Number& a, const Number& b) {
  const bool integer = a.integer && b.integer;
  if (fn == MapFn::div && constant_value(b) == 0.0) return NumberFault::division_by_zero;
  if (fn == MapFn::pow)
    if (auto power = exact_power(a, b)) return *power;
  const bool symbolic = depends_on_dims(a) || depends_on_dims(b);
  const bool both_exact = as_poly(a) != nullptr && as_poly(b) != nullptr;
  if (both_exact || symbolic) {
    const auto x = exact_poly(a), y = exact_poly(b);
    if (x && y) {
      if (fn == MapFn::add) return exact(*x + *y, integer);
      if (fn == MapFn::sub) return exact(*x - *y, integer);
      if (fn == MapFn::mul) return exact(*x * *y, integer);
      if (fn == MapFn::div && never_zero(*y)) return exact(divide(*x, *y), false);
      if (fn == MapFn::minimum) return exact(min_of(*x, *y), integer);
      if (fn == MapFn::maximum) return exact(max_of(*x, *y), integer);
    }
    if (symbolic) return NumberFault::needs_nodes;
  }
  return inexact(apply_binary(fn, *constant_value(a), *constant_value(b)));
}

Result fold_unary(MapFn fn, const Number& x) {
  if (const Poly* poly = as_poly(x)) {
    if (fn == MapFn::neg) return exact(-*poly, x.integer);
    if (fn == MapFn::relu) return exact(max_of(*poly, Poly(0)), x.integer);
    if (fn == MapFn::abs) {
      if (const auto value = poly->as_rational()) return exact(value->sign() < 0 ? -*poly : *poly, x.integer);
      if (provably_positive(*poly)) return x;
    }
  }
  const auto value = constant_value(x);
  if (!value) return NumberFault::needs_nodes;
  if (fn == MapFn::sign && x.integer) return exact(Poly(*value > 0 ? 1 : *value < 0 ? -1 : 0), true);
  return inexact(apply_unary(fn, *value));
}

}  // namespace

double apply_unary(MapFn fn, double x) {
  switch (fn) {
    case MapFn::neg:
      return -x;
    case MapFn::abs:
      return std::fabs(x);
    case MapFn::sign:
      return std::isnan(x) ? x : x > 0 ? 1 : x < 0 ? -1 : 0;
    case MapFn::relu:
      return x > 0 || std::isnan(x) ? x : 0;
    case MapFn::exp:
      return std::exp(x);
    case MapFn::expm1:
      return std::expm1(x);
    case MapFn::log:
      return std::log(x);
    case MapFn::log1p:
      return std::log1p(x);
    case MapFn::sqrt:
      return std::sqrt(x);
    case MapFn::rsqrt:
      return 1 / std::sqrt(x);
    case MapFn::sin:
      return std::sin(x);
    case MapFn::cos:
      return std::cos(x);
    case MapFn::tanh:
      return std::tanh(x);
    case MapFn::sigmoid:
      return 1 / (1 + std::exp(-x));
    case MapFn::erf:
      return std::erf(x);
    case MapFn::gelu:
      return 0.5 * x * std::erfc(-x * std::numbers::sqrt2 / 2);
    case MapFn::gelu_tanh:
      return 0.5 * x * (1 + std::tanh(std::sqrt(2 / std::numbers::pi) * (x + 0.044715 * x * x * x)));
    case MapFn::silu:
      return x / (1 + std::exp(-x));
    case MapFn::softplus:
      return x > 0 ? x + std::log1p(std::exp(-x)) : std::log1p(std::exp(x));
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
    case MapFn::logical_not:
    case MapFn::where:
      break;
  }
  internal_error(__FILE__, __LINE__, "not a unary function of numbers");
}

std::variant<Number, NumberFault> fold_numbers(MapFn fn, std::span<const Number> operands) {
  if (is_comparison(fn) || is_logical(fn) || fn == MapFn::where) return NumberFault::needs_nodes;
  return operands.size() == 1 ? fold_unary(fn, operands[0]) : fold_binary(fn, operands[0], operands[1]);
}

std::optional<double> constant_value(const Number& number) {
  if (const double* value = std::get_if<double>(&number.value)) return *value;
  if (const auto value = as_poly(number)->as_rational()) return value->to_double();
  return std::nullopt;
}

std::optional<Rational> constant_rational(const Number& number) {
  if (const Poly* poly = as_poly(number)) return poly->as_rational();
  return decimal(std::get<double>(number.value));
}

std::string describe(const Number& number) {
  if (const Poly* poly = as_poly(number)) return poly->str();
  return fmt::format("{}", std::get<double>(number.value));
}

bool representable(const Number& number, DType dtype) {
  if (dtype == DType::real || dtype == DType::f64 || dtype == DType::boolean) return true;
  const auto value = constant_value(number);
  if (!value || std::isnan(*value)) return true;
  if (is_floating(dtype)) return std::isinf(*value) ? dtype != DType::f8e4m3 : std::fabs(*value) <= info(dtype).largest;
  const auto integer = constant_rational(number);
  if (!integer || !integer->is_integer()) return false;
  const bool is_signed = dtype == DType::i64 || dtype == DType::i32;
  const Rational largest = pow(Rational(2), info(dtype).bits - (is_signed ? 1 : 0)) - Rational(1);
  return *integer <= largest && *integer >= (is_signed ? -largest - Rational(1) : Rational(0));
}

}  // namespace einc
