// SPDX-License-Identifier: Apache-2.0
// Symbolic sizes: every axis size and every cost formula is a Poly, a sum of terms `coefficient * product of atoms^exponent`
// with exact rational coefficients and exponents of either sign. An atom is a dim, floor(x), max(x, y, ...) or the inverse
// of a sum that divides nothing, (b + c)^-1. Values are immutable and shared: a copy is one counter, an int64 constant
// takes no memory, the hash is stored. Invariant: terms are merged and normalised, so `==` compares structure. It is
// complete for Laurent polynomials of dims; with floor, max and inverses equal values may differ (see compare in order.h).
#pragma once
#include <boost/smart_ptr/intrusive_ptr.hpp>
#include <cstdint>
#include <functional>
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <unordered_map>
#include <vector>

#include "compiler/symbolic/rational.h"
#include "runtime/base/name.h"

namespace einc {

class Poly;
struct PolyRep;  // poly_rep.h
void intrusive_ptr_add_ref(const PolyRep* p) noexcept;
void intrusive_ptr_release(const PolyRep* p) noexcept;

using Bindings = std::unordered_map<Name, int64_t>;
using Substitution = std::unordered_map<Name, Poly>;

class Poly {
 public:
  Poly() = default;                      // 0
  Poly(int64_t value) : small_(value) {  // NOLINT: a number is a size
    if (value == INT64_MIN) *this = Poly(Rational(value));
  }
  explicit Poly(const Rational& value);
  static Poly dim(Name name);  // kept
  // The same value, which now lives as long as the process and is not counted: for sizes of dims, which types hold by the thousand and
  // threads copy at the same time. One counter for all of them makes two threads take longer than one.
  Poly kept() const;

  bool is_zero() const { return !rep_ && small_ == 0; }
  bool is_one() const { return !rep_ && small_ == 1; }
  bool is_constant() const;
  bool is_monomial() const;   // one term, not 0
  size_t term_count() const;  // 0 has none
  // What a program's sizes stay below: 64 terms of degree 63, numerators and denominators of 300 digits. Work on two such
  // values is bounded; what makes values of values for a program checks its results.
  bool is_small() const;
  // Takes integer values whenever every dim is an integer, as far as the form shows.
  bool is_integral() const;
  std::optional<int64_t> as_integer() const { return rep_ ? std::nullopt : std::optional(small_); }
  std::optional<Rational> as_rational() const;  // when constant
  bool contains(Name dim) const;
  std::vector<Name> free_names() const;  // sorted by text

  // Exact value; nullopt when a name is missing or an inverse meets 0.
  std::optional<Rational> evaluate(const Bindings& values) const;
  std::optional<int64_t> evaluate_integer(const Bindings& values) const;  // when it is an integer below 2^63
  std::optional<double> to_double(const Bindings& values) const;
  // Replaces all names at once; an inverse of 0 is an internal error.
  Poly substitute(const Substitution& map) const;

  // Canonical text, terms by total degree, then alphabetically: "2*batch*embed^2 - 1/2*floor((seq + 1)/2) + a*b^-1".
  std::string str() const;
  size_t hash() const;

  Poly operator-() const;
  friend Poly operator+(const Poly& a, const Poly& b);
  friend Poly operator-(const Poly& a, const Poly& b);
  friend Poly operator*(const Poly& a, const Poly& b);
  Poly& operator+=(const Poly& b) { return *this = *this + b; }
  Poly& operator-=(const Poly& b) { return *this = *this - b; }
  Poly& operator*=(const Poly& b) { return *this = *this * b; }
  friend bool operator==(const Poly& a, const Poly& b);

 private:
  friend struct PolyRep;
  explicit Poly(boost::intrusive_ptr<const PolyRep> rep) : rep_(std::move(rep)) {}
  int64_t small_ = 0;                        // the value when rep_ is null, else 0
  boost::intrusive_ptr<const PolyRep> rep_;  // null exactly for integers in [-(2^63-1), 2^63-1]
};

// a / b, exact: monomial divisors and polynomial divisors that leave no remainder give a polynomial, others an inverse
// atom. b is not 0.
Poly divide(const Poly& a, const Poly& b);
Poly pow(const Poly& base, int exponent);  // base is not 0 when the exponent is negative
// floor(a / b): a's quotient when that is known to be an integer, with whole terms moved out: floor((2*a + 1)/2) is a.
Poly floor_divide(const Poly& a, const Poly& b);
Poly floor(const Poly& x);
// The largest of one or more; what another argument provably reaches for dims >= 1 is dropped. min is -max of negatives.
Poly max_of(std::span<const Poly> values);
Poly max_of(const Poly& a, const Poly& b);
Poly min_of(const Poly& a, const Poly& b);

// Reads what str() writes, and any expression of + - * / ^ ( ) floor max, integers and names; nullopt for anything else.
// Nesting and size of the result are bounded: the text may be hostile.
std::optional<Poly> parse_poly(std::string_view text);

// False when the value at `values` is known and above 2^63 - 1.
bool fits_63_bits(const Poly& poly, const Bindings& values);

// A derived dim and what it stands for, in base dims.
struct Definition {
  Name name;
  Poly value;
};
// The same value, nicer to read: where heads*head occurs in a term and embed = heads*head is defined, writes embed.
// Definitions of one term only; earlier ones first, those with coefficient 1 before the others.
Poly fold_names(const Poly& poly, std::span<const Definition> definitions);
// The same value where every definition is an integer: with half = h/2, floor(h/2) is h/2. Finds those whose arguments fold_names writes
// in whole names.
Poly without_floors(const Poly& poly, std::span<const Definition> definitions);

}  // namespace einc

template <>
struct std::hash<einc::Poly> {
  size_t operator()(const einc::Poly& p) const { return p.hash(); }
};
