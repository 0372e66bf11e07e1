// SPDX-License-Identifier: Apache-2.0
// Division and powers. Laurent monomials divide exactly; polynomials by long division in the lexicographic order, which
// finds the quotient whenever there is one; anything else becomes numerator * S^-1 with an atom S made primitive (content
// 1, no common monomial, first printed term positive), so that one denominator is one atom.
#include <algorithm>

#include "compiler/symbolic/poly_rep.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr size_t kQuotientLimit = 1024;  // terms; (x^n - 1)/(x - 1) has n of them

Term inverse(const Term& t) { return {power(t.monomial, -1), Rational(1) / t.coefficient}; }

Terms one_term(Term t) {
  Terms terms;
  terms.push_back(std::move(t));
  return terms;
}

bool is_polynomial(const Monomial& m) {
  return std::all_of(m.begin(), m.end(), [](const Factor& f) { return f.exponent > 0; });
}

// A sum (to a negative power) that occurs in the terms, with its lowest exponent.
std::optional<Factor> some_sum(std::span<const Term> terms) {
  std::optional<Factor> found;
  for (const Term& t : terms)
    for (const Factor& f : t.monomial)
      if (f.atom.kind() == SizeAtomKind::sum && (!found || (found->atom == f.atom && f.exponent < found->exponent))) found = f;
  return found;
}

// The power of a sum as terms: its polynomial where the exponent is positive.
Poly sum_power(SizeAtom atom, int exponent) {
  return exponent > 0 ? pow(compound(atom).arguments.front(), exponent) : atom_power(atom, exponent);
}

// p times S^exponent for one sum S that p holds at no lower exponent: no factor S is left in the denominator.
Poly clear_sum(const Poly& p, Factor sum) {
  Poly result;
  for (const Term& t : TermList(p)) {
    const Poly rest = PolyRep::make(one_term({without(t.monomial, sum.atom), t.coefficient}));
    result += rest * sum_power(sum.atom, exponent_of(t.monomial, sum.atom) - sum.exponent);
  }
  return result;
}

// 1 / b for a b of several terms without sums.
Poly inverse_sum(const Poly& b) {
  const TermList terms(b);
  Term scale = inverse({monomial_content(terms), coefficient_content(terms)});
  Terms primitive = multiply(terms, scale);
  if (printing_order(primitive).front()->coefficient.sign() < 0) {
    scale.coefficient = -scale.coefficient;
    primitive = multiply(terms, scale);
  }
  const SizeAtom atom = intern_atom(SizeAtomKind::sum, {PolyRep::make(std::move(primitive))}, Integral::no);
  return PolyRep::make(multiply(TermList(atom_power(atom, -1)), scale));
}

Poly divide_by_term(const Poly& a, const Term& b) {
  Poly result = PolyRep::make(multiply(TermList(a), Term{{}, Rational(1) / b.coefficient}));
  Term rest{{}, Rational(1)};
  for (const Factor& f : b.monomial) {
    if (f.atom.kind() == SizeAtomKind::sum) {
      result *= sum_power(f.atom, -f.exponent);
    } else {
      rest.monomial.push_back({f.atom, -f.exponent});
    }
  }
  return rest.monomial.empty() ? result : result * PolyRep::make(one_term(std::move(rest)));
}

// Cancels one sum that divides all terms that hold it at one exponent; false when there is none.
bool cancel_one_sum(Terms& terms) {
  std::vector<Factor> sums;
  for (const Term& t : terms)
    for (const Factor& f : t.monomial)
      if (f.atom.kind() == SizeAtomKind::sum && std::find(sums.begin(), sums.end(), f) == sums.end()) sums.push_back(f);
  for (const Factor& sum : sums) {
    Terms numerator, rest;
    for (const Term& t : terms) {
      const bool has = exponent_of(t.monomial, sum.atom) == sum.exponent;
      (has ? numerator : rest).push_back(has ? Term{without(t.monomial, sum.atom), t.coefficient} : t);
    }
    if (numerator.size() < 2) continue;
    normalise(numerator);
    const auto quotient = exact_quotient(numerator, TermList(compound(sum.atom).arguments.front()));
    if (!quotient) continue;
    Term factor{{}, Rational(1)};
    if (sum.exponent != -1) factor.monomial.push_back({sum.atom, sum.exponent + 1});
    append(rest, multiply(*quotient, factor));
    normalise(rest);
    terms = std::move(rest);
    return true;
  }
  return false;
}

}  // namespace

std::optional<Terms> exact_quotient(std::span<const Term> a, std::span<const Term> b) {
  if (a.empty()) return Terms();
  // Without monomial contents both are polynomials and b divides a exactly when it does among polynomials.
  const Term content_a{monomial_content(a), Rational(1)}, content_b{monomial_content(b), Rational(1)};
  Terms rest = multiply(a, inverse(content_a));
  const Terms divisor = multiply(b, inverse(content_b));
  const Term lead = inverse(divisor.front());
  if (!is_polynomial(multiply(rest.back().monomial, power(divisor.back().monomial, -1)))) return std::nullopt;
  Terms quotient;
  while (!rest.empty()) {
    Term next = multiply(std::span<const Term>(&rest.front(), 1), lead).front();
    if (!is_polynomial(next.monomial) || quotient.size() == kQuotientLimit) return std::nullopt;
    const Term negative{next.monomial, -next.coefficient};
    rest = add(rest, multiply(divisor, negative));
    quotient.push_back(std::move(next));
  }
  return multiply(quotient, Term{multiply(content_a.monomial, power(content_b.monomial, -1)), Rational(1)});
}

Poly finish(Terms terms) {
  normalise(terms);
  while (cancel_one_sum(terms)) {
  }
  return PolyRep::make(std::move(terms));
}

Poly divide(const Poly& a, const Poly& b) {
  EINC_CHECK(!b.is_zero(), "division of a symbolic size by 0");
  if (a.is_zero() || b.is_one()) return a;
  const TermList below(b);
  if (below.size() == 1) return divide_by_term(a, below.front());
  if (const auto sum = some_sum(below)) {  // a / (B * S^-k) = a * S^k / B
    const Poly cleared = clear_sum(b, *sum);
    return divide(a * sum_power(sum->atom, -sum->exponent), cleared);
  }
  if (auto quotient = exact_quotient(TermList(a), below)) return finish(std::move(*quotient));
  return a * inverse_sum(b);
}

Poly pow(const Poly& base, int exponent) {
  if (exponent == 0) return Poly(1);
  if (exponent == 1) return base;
  const TermList terms(base);
  if (exponent < 0) {
    if (terms.size() < 2) return divide(Poly(1), pow(base, -exponent));
    return pow(divide(Poly(1), base), -exponent);
  }
  if (terms.size() == 1)
    return PolyRep::make(one_term({power(terms.front().monomial, exponent), pow(terms.front().coefficient, exponent)}));
  Poly result(1), square = base;
  for (int e = exponent; e != 0; e >>= 1) {
    if (e & 1) result *= square;
    if (e > 1) square *= square;
  }
  return result;
}

}  // namespace einc
