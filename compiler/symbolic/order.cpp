// SPDX-License-Identifier: Apache-2.0
// Signs of polynomials for all dims >= 1. Each atom is known to be at least some L (1 for a dim); writing it as L + atom'
// and expanding gives a polynomial in non-negative unknowns, whose sign shows when all coefficients agree. Where that
// fails, one floor(x) is replaced by its bounds x - 1 + 1/m <= floor(x) <= x, or one max by each of its arguments.
// Invariant: every answer other than `unknown` holds for all dims; steps and sizes are bounded.
#include "compiler/symbolic/order.h"

#include <algorithm>

#include "compiler/symbolic/poly_rep.h"

namespace einc {
namespace {

enum class Sign : uint8_t { zero, positive, non_negative, negative, non_positive, unknown };

constexpr int64_t kExpansionLimit = 1 << 12;  // terms after the shift
constexpr int kExponentLimit = 32;            // of a factor to expand
constexpr int kStepLimit = 48;                // replacements of floor and max in one question

Sign negate(Sign s) {
  switch (s) {
    case Sign::zero:
      return Sign::zero;
    case Sign::positive:
      return Sign::negative;
    case Sign::non_negative:
      return Sign::non_positive;
    case Sign::negative:
      return Sign::positive;
    case Sign::non_positive:
      return Sign::non_negative;
    case Sign::unknown:
      break;
  }
  return Sign::unknown;
}

bool at_least_zero(Sign s) { return s == Sign::zero || s == Sign::positive || s == Sign::non_negative; }
bool at_most_zero(Sign s) { return at_least_zero(negate(s)); }

// The sign of a value that has one of two signs.
Sign join(Sign a, Sign b) {
  if (a == b) return a;
  if (at_least_zero(a) && at_least_zero(b)) return Sign::non_negative;
  if (at_most_zero(a) && at_most_zero(b)) return Sign::non_positive;
  return Sign::unknown;
}

std::vector<SizeAtom> atoms_of(const Poly& p) {
  std::vector<SizeAtom> atoms;
  for (const Term& t : TermList(p))
    for (const Factor& f : t.monomial)
      if (std::find(atoms.begin(), atoms.end(), f.atom) == atoms.end()) atoms.push_back(f.atom);
  return atoms;
}

// Terms that hold atom^exponent, with that factor removed.
Poly cofactor(const Poly& p, SizeAtom atom, int exponent) {
  Terms terms;
  for (const Term& t : TermList(p))
    if (exponent_of(t.monomial, atom) == exponent) terms.push_back({without(t.monomial, atom), t.coefficient});
  normalise(terms);
  return PolyRep::make(std::move(terms));
}

class Question {
 public:
  Sign sign(const Poly& p) {
    if (const auto c = p.as_rational()) return c->sign() == 0 ? Sign::zero : c->sign() > 0 ? Sign::positive : Sign::negative;
    if (--steps_ < 0) return Sign::unknown;
    for (const SizeAtom atom : atoms_of(p))
      if (atom.kind() == SizeAtomKind::sum) return without_sum(p, atom);
    if (const Sign s = shifted(p); s != Sign::unknown) return s;
    for (const SizeAtom atom : atoms_of(p))
      if (atom.kind() != SizeAtomKind::dim)
        if (const Sign s = atom.kind() == SizeAtomKind::floor ? by_floor_bounds(p, atom) : by_max_cases(p, atom); s != Sign::unknown)
          return s;
    return Sign::unknown;
  }

 private:
  // p * S^k where k clears the sum S from the denominators; S has one sign, or nothing is known.
  Sign without_sum(const Poly& p, SizeAtom atom) {
    const Poly& sum = compound(atom).arguments.front();
    const Sign s = sign(sum);
    if (s != Sign::positive && s != Sign::negative) return Sign::unknown;
    int lowest = 0;
    for (const Term& t : TermList(p)) lowest = std::min(lowest, exponent_of(t.monomial, atom));
    Poly cleared;
    for (int e = lowest; e <= 0; ++e) cleared += cofactor(p, atom, e) * pow(sum, e - lowest);
    const Sign result = sign(cleared);
    return s == Sign::negative && lowest % 2 != 0 ? negate(result) : result;
  }

  // A constant that the atom never falls below, when one shows.
  std::optional<Rational> lower_bound(SizeAtom atom) {
    if (atom.kind() == SizeAtomKind::dim) return Rational(1);
    if (atom.kind() == SizeAtomKind::sum || --steps_ < 0) return std::nullopt;
    std::optional<Rational> best;
    for (const Poly& argument : compound(atom).arguments) {
      auto bound = lower_bound(argument);
      if (bound && atom.kind() == SizeAtomKind::floor) bound = bound->floor();
      if (bound && (!best || *bound > *best)) best = bound;
    }
    return best;
  }

  // Term by term: with no negative exponent the shifted terms other than the constant must be >= 0; a falling term
  // c*d^-1 is above 0, or above its value at the bounds when c < 0.
  std::optional<Rational> lower_bound(const Poly& p) {
    Terms rising;
    Rational constant;
    for (const Term& t : TermList(p)) {
      const bool falls = std::any_of(t.monomial.begin(), t.monomial.end(), [](const Factor& f) { return f.exponent < 0; });
      if (!falls) {
        rising.push_back(t);
        continue;
      }
      Rational value = t.coefficient;
      for (const Factor& f : t.monomial) {
        const auto bound = lower_bound(f.atom);
        if (!bound || bound->sign() <= 0) return std::nullopt;
        if (value.sign() < 0 && f.exponent > 0) return std::nullopt;
        value = value * pow(*bound, f.exponent);
      }
      if (value.sign() < 0) constant = constant + value;
    }
    const auto expanded = shift(PolyRep::make(std::move(rising)));
    if (!expanded) return std::nullopt;
    for (const Term& t : TermList(*expanded)) {
      if (t.monomial.empty())
        constant = constant + t.coefficient;
      else if (t.coefficient.sign() < 0)
        return std::nullopt;
    }
    return constant;
  }

  // p with every atom replaced by its bound plus itself, so that atoms stand for unknowns >= 0. No negative exponents.
  std::optional<Poly> shift(const Poly& p) {
    std::vector<std::pair<SizeAtom, Poly>> shifted_atoms;
    for (const SizeAtom atom : atoms_of(p)) {
      const auto bound = lower_bound(atom);
      if (!bound) return std::nullopt;
      shifted_atoms.emplace_back(atom, Poly(*bound) + atom_power(atom));
    }
    int64_t expansion = 0;
    for (const Term& t : TermList(p)) {
      int64_t size = 1;
      for (const Factor& f : t.monomial) {
        if (f.exponent > kExponentLimit) return std::nullopt;
        size = std::min(kExpansionLimit + 1, size * (int64_t{f.exponent} + 1));
      }
      expansion += size;
      if (expansion > kExpansionLimit) return std::nullopt;
    }
    Terms sum;
    for (const Term& t : TermList(p)) {
      Poly product(t.coefficient);
      for (const Factor& f : t.monomial) {
        const auto it = std::find_if(shifted_atoms.begin(), shifted_atoms.end(), [&](const auto& s) { return s.first == f.atom; });
        product *= pow(it->second, f.exponent);
      }
      append(sum, TermList(product));
    }
    normalise(sum);
    return PolyRep::make(std::move(sum));
  }

  Sign shifted(const Poly& p) {
    const TermList terms(p);
    std::vector<SizeAtom> not_positive;
    for (const SizeAtom atom : atoms_of(p)) {
      const auto bound = lower_bound(atom);
      if (!bound || bound->sign() <= 0) not_positive.push_back(atom);
    }
    Term content{{}, Rational(1)};  // the common positive factor: without it p is smaller and has no negative exponents
    for (const Factor& f : monomial_content(terms)) {
      const bool positive = std::find(not_positive.begin(), not_positive.end(), f.atom) == not_positive.end();
      if (positive)
        content.monomial.push_back({f.atom, -f.exponent});
      else if (f.exponent < 0)
        return Sign::unknown;
    }
    const bool all_positive = not_positive.empty();
    const auto same_sign = [&](int s) {
      return std::all_of(terms.begin(), terms.end(), [&](const Term& t) { return t.coefficient.sign() == s; });
    };
    if (all_positive && same_sign(1)) return Sign::positive;
    if (all_positive && same_sign(-1)) return Sign::negative;
    const auto expanded = shift(PolyRep::make(multiply(terms, content)));
    if (!expanded) return Sign::unknown;
    int constant = 0;
    bool some_positive = false, some_negative = false;
    for (const Term& t : TermList(*expanded)) {
      (t.coefficient.sign() > 0 ? some_positive : some_negative) = true;
      if (t.monomial.empty()) constant = t.coefficient.sign();
    }
    if (some_positive && some_negative) return Sign::unknown;
    if (some_negative) return constant < 0 ? Sign::negative : Sign::non_positive;
    return constant > 0 ? Sign::positive : Sign::non_negative;
  }

  // p = A*floor(x) + B: bounds of p from those of floor(x), by the sign of A.
  Sign by_floor_bounds(const Poly& p, SizeAtom atom) {
    const Poly slope = cofactor(p, atom, 1), rest = cofactor(p, atom, 0);
    if (!(slope * atom_power(atom) + rest == p)) return Sign::unknown;
    const Sign s = sign(slope);
    if (!at_least_zero(s) && !at_most_zero(s)) return Sign::unknown;
    const Poly& x = compound(atom).arguments.front();
    Rational unit(1);  // 1/m when m*x is whole, else 0: how far floor(x) stays above x - 1
    for (const Term& t : TermList(x)) unit = Rational(1) / lcm(unit.denominator(), t.coefficient.denominator());
    if (!(x * Poly(unit.denominator())).is_integral()) unit = Rational(0);
    const Poly high = slope * x + rest, low = high - slope * Poly(Rational(1) - unit);
    const Sign at_low = sign(at_least_zero(s) ? low : high), at_high = sign(at_least_zero(s) ? high : low);
    if (at_least_zero(at_low)) return at_low == Sign::positive ? Sign::positive : Sign::non_negative;
    if (at_most_zero(at_high)) return at_high == Sign::negative ? Sign::negative : Sign::non_positive;
    return Sign::unknown;
  }

  // max(x, ...) is one of its arguments; and at least each of them, which bounds A*max + B from below when A >= 0.
  Sign by_max_cases(const Poly& p, SizeAtom atom) {
    const auto& arguments = compound(atom).arguments;
    const Poly slope = cofactor(p, atom, 1), rest = cofactor(p, atom, 0);
    if (slope * atom_power(atom) + rest == p) {
      const Sign s = sign(slope);
      for (const Poly& argument : arguments) {
        if (!at_least_zero(s) && !at_most_zero(s)) break;
        const Sign bound = sign(slope * argument + rest);
        if (at_least_zero(s) && at_least_zero(bound)) return bound == Sign::positive ? Sign::positive : Sign::non_negative;
        if (at_most_zero(s) && at_most_zero(bound)) return bound == Sign::negative ? Sign::negative : Sign::non_positive;
      }
    }
    std::optional<Sign> result;
    for (const Poly& argument : arguments) {
      Poly value;
      for (const Term& t : TermList(p)) {
        const int e = exponent_of(t.monomial, atom);
        if (e < 0) return Sign::unknown;
        Terms other;
        other.push_back({without(t.monomial, atom), t.coefficient});
        value += PolyRep::make(std::move(other)) * pow(argument, e);
      }
      const Sign s = sign(value);
      result = result ? join(*result, s) : s;
      if (*result == Sign::unknown) break;
    }
    return *result;
  }

  int steps_ = kStepLimit;
};

Sign sign_of(const Poly& p) { return Question().sign(p); }

}  // namespace

Ordering compare(const Poly& a, const Poly& b) {
  if (a == b) return Ordering::equal;
  switch (sign_of(a - b)) {
    case Sign::zero:
      return Ordering::equal;
    case Sign::positive:
      return Ordering::greater;
    case Sign::non_negative:
      return Ordering::greater_equal;
    case Sign::negative:
      return Ordering::less;
    case Sign::non_positive:
      return Ordering::less_equal;
    case Sign::unknown:
      break;
  }
  return Ordering::unknown;
}

bool provably_positive(const Poly& p) { return sign_of(p) == Sign::positive; }
bool provably_at_least(const Poly& p, const Poly& bound) { return at_least_zero(sign_of(p - bound)); }

bool provably_equal(const Poly& a, const Poly& b) {
  if (a == b) return true;
  const Poly difference = a - b;
  if (difference.is_zero()) return true;
  const std::vector<SizeAtom> atoms = atoms_of(difference);  // of dims alone it is 0 for all values only when it has no terms
  return std::any_of(atoms.begin(), atoms.end(), [](SizeAtom x) { return x.compound != 0; }) && sign_of(difference) == Sign::zero;
}

}  // namespace einc
