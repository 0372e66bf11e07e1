// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/numbers.h"

#include <fmt/format.h>

#include <cmath>

#include "compiler/ir/map_value.h"
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

// floor(a / b) or what is left of a; of reals the graph tells what is wrong.
Result fold_division(MapFn fn, const Number& a, const Number& b) {
  if (!a.integer || !b.integer || as_poly(a) == nullptr || as_poly(b) == nullptr) return NumberFault::needs_nodes;
  if (as_poly(b)->is_zero()) return NumberFault::division_by_zero;
  if (!never_zero(*as_poly(b))) return NumberFault::needs_nodes;
  const Poly quotient = floor_divide(*as_poly(a), *as_poly(b));
  return exact(fn == MapFn::floor_div ? quotient : *as_poly(a) - *as_poly(b) * quotient, true);
}

Result fold_binary(MapFn fn, const Number& a, const Number& b) {
  const bool integer = a.integer && b.integer;
  if (fn == MapFn::div && constant_value(b) == 0.0) return NumberFault::division_by_zero;
  if (divides_integers(fn)) return fold_division(fn, a, b);
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
  return inexact(map_value(fn, *constant_value(a), *constant_value(b)));
}

Result fold_unary(MapFn fn, const Number& x) {
  if (rounds_to_integer(fn) && x.integer) return x;
  if (const Poly* poly = as_poly(x)) {
    if (fn == MapFn::floor) return exact(floor(*poly), false);
    if (fn == MapFn::ceil) return exact(-floor(-*poly), false);
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
  return inexact(map_value(fn, *value));
}

}  // namespace

std::variant<Number, NumberFault> fold_numbers(MapFn fn, std::span<const Number> operands) {
  if (is_comparison(fn) || is_logical(fn) || fn == MapFn::where) return NumberFault::needs_nodes;
  if (fn == MapFn::clamp) {
    const Result at_least = fold_binary(MapFn::maximum, operands[0], operands[1]);
    const Number* raised = std::get_if<Number>(&at_least);
    return raised != nullptr ? fold_binary(MapFn::minimum, *raised, operands[2]) : at_least;
  }
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

const Poly* integer_poly(const Value& value) {
  const Number* number = std::get_if<Number>(&value.data);
  return number != nullptr && number->integer ? std::get_if<Poly>(&number->value) : nullptr;
}

std::string describe_value(Context& context, const Value& value) {
  if (const Number* number = std::get_if<Number>(&value.data)) return describe(*number);
  if (const NodeId* node = std::get_if<NodeId>(&value.data)) return context.show(context.build().type(*node));
  return "several values";
}

}  // namespace einc
