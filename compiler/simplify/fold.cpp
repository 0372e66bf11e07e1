// SPDX-License-Identifier: Apache-2.0
#include "compiler/simplify/fold.h"

#include <cmath>

#include "compiler/ir/map_value.h"

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

std::optional<int64_t> integer(const ScalarValue& value) {
  const Poly* p = poly(value);
  return p ? p->as_integer() : std::nullopt;
}

// Exact of rationals, whatever their size.
std::optional<bool> compare(MapFn fn, const ScalarValue& a, const ScalarValue& b) {
  const auto x = poly(a) ? poly(a)->as_rational() : std::nullopt, y = poly(b) ? poly(b)->as_rational() : std::nullopt;
  if (x && y) return map_comparison(fn, (*x - *y).sign(), 0);
  const auto wide = [](const ScalarValue& value) -> std::optional<long double> {
    if (const auto whole = integer(value)) return static_cast<long double>(*whole);
    return number(value);
  };
  const auto first = wide(a), second = wide(b);
  return first && second ? std::optional(map_comparison(fn, *first, *second)) : std::nullopt;
}

std::optional<ScalarValue> fold(MapFn fn, std::span<const ScalarValue> v, DType dtype) {
  const auto first = number(v[0]);
  if (fn == MapFn::where) return first ? std::optional(*first != 0 ? v[1] : v[2]) : std::nullopt;
  if (is_comparison(fn)) {
    const auto holds = compare(fn, v[0], v[1]);
    return holds ? std::optional<ScalarValue>(Poly(*holds ? 1 : 0)) : std::nullopt;
  }
  if (fn == MapFn::neg)
    if (const Poly* p = poly(v[0])) return -*p;
  if (v.size() == 2 && poly(v[0]) && poly(v[1]))
    if (auto exact = fold_exact(fn, *poly(v[0]), *poly(v[1]))) return exact;
  if (!is_floating(dtype)) {
    const auto a = integer(v[0]), b = v.size() > 1 ? integer(v[1]) : a, c = v.size() > 2 ? integer(v[2]) : a;
    if (!a || !b || !c) return std::nullopt;
    const bool fails = (fn == MapFn::pow && *b < 0) || (divides_integers(fn) && *b == 0);  // when it runs
    return fails ? std::nullopt : std::optional<ScalarValue>(Poly(map_integer(fn, *a, *b, *c)));
  }
  const auto second = v.size() > 1 ? number(v[1]) : first, third = v.size() > 2 ? number(v[2]) : first;
  return first && second && third ? std::optional<ScalarValue>(map_value(fn, *first, *second, *third)) : std::nullopt;
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
  auto result = fold(fn, exact, dtype);
  if (result) result = exact_value(*result);
  // A value of values grows without end, 2^n after n doublings: what is no size of a program is computed instead.
  if (result && poly(*result) && !poly(*result)->is_small()) return std::nullopt;
  return result && fits(*result, dtype) ? result : std::nullopt;
}

}  // namespace einc
