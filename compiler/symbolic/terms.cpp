// SPDX-License-Identifier: Apache-2.0
// Arithmetic on sorted term lists. The lexicographic order compares exponents, absent ones as 0, at the first atom where
// two monomials differ; it is preserved by multiplying both with a monomial, negative exponents included, so products
// with one term need no sorting and the first term of a product is the product of the first terms.
#include <algorithm>
#include <climits>

#include "compiler/symbolic/poly_rep.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

int32_t checked_exponent(int64_t e) {
  EINC_CHECK(e >= -INT32_MAX && e <= INT32_MAX, "exponent out of range in a symbolic size");
  return static_cast<int32_t>(e);
}

// Calls visit(atom, exponent in a, exponent in b) for each atom of either, in order, until it returns false.
template <class Visit>
void zip(const Monomial& a, const Monomial& b, Visit visit) {
  size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    const uint64_t ka = i < a.size() ? a[i].atom.key() : UINT64_MAX, kb = j < b.size() ? b[j].atom.key() : UINT64_MAX;
    const SizeAtom atom = ka <= kb ? a[i].atom : b[j].atom;
    const int ea = ka <= kb ? a[i++].exponent : 0, eb = kb <= ka ? b[j++].exponent : 0;
    if (!visit(atom, ea, eb)) return;
  }
}

}  // namespace

int compare_monomials(const Monomial& a, const Monomial& b) {
  int result = 0;
  zip(a, b, [&](SizeAtom, int ea, int eb) {
    result = (ea > eb) - (ea < eb);
    return result == 0;
  });
  return result;
}

Monomial multiply(const Monomial& a, const Monomial& b) {
  if (b.empty()) return a;
  if (a.empty()) return b;
  Monomial product;
  zip(a, b, [&](SizeAtom atom, int ea, int eb) {
    if (const int64_t e = int64_t{ea} + eb; e != 0) product.push_back({atom, checked_exponent(e)});
    return true;
  });
  return product;
}

Monomial power(const Monomial& m, int exponent) {
  Monomial result;
  if (exponent == 0) return result;
  for (const Factor& f : m) result.push_back({f.atom, checked_exponent(int64_t{f.exponent} * exponent)});
  return result;
}

int exponent_of(const Monomial& m, SizeAtom atom) {
  for (const Factor& f : m)
    if (f.atom == atom) return f.exponent;
  return 0;
}

bool is_integral(const Monomial& m) {
  return std::all_of(m.begin(), m.end(), [](const Factor& f) { return f.exponent > 0 && f.atom.is_integral(); });
}

Monomial without(const Monomial& m, SizeAtom atom) {
  Monomial rest;
  for (const Factor& f : m)
    if (!(f.atom == atom)) rest.push_back(f);
  return rest;
}

Terms add(std::span<const Term> a, std::span<const Term> b) {
  Terms sum;
  sum.reserve(a.size() + b.size());
  size_t i = 0, j = 0;
  while (i < a.size() && j < b.size()) {
    const int order = compare_monomials(a[i].monomial, b[j].monomial);
    if (order > 0) {
      sum.push_back(a[i++]);
    } else if (order < 0) {
      sum.push_back(b[j++]);
    } else {
      Rational c = a[i].coefficient + b[j].coefficient;
      if (!c.is_zero()) sum.push_back({a[i].monomial, std::move(c)});
      ++i, ++j;
    }
  }
  append(sum, a.subspan(i));
  append(sum, b.subspan(j));
  return sum;
}

Terms multiply(std::span<const Term> a, const Term& b) {
  Terms product;
  product.reserve(a.size());
  for (const Term& t : a) product.push_back({multiply(t.monomial, b.monomial), t.coefficient * b.coefficient});
  return product;
}

Terms multiply(std::span<const Term> a, std::span<const Term> b) {
  if (b.size() == 1) return multiply(a, b.front());
  if (a.size() == 1) return multiply(b, a.front());
  Terms product;
  product.reserve(a.size() * b.size());
  for (const Term& t : b)
    for (const Term& u : a) product.push_back({multiply(u.monomial, t.monomial), u.coefficient * t.coefficient});
  normalise(product);
  return product;
}

void normalise(Terms& terms) {
  if (terms.size() > 1)
    std::stable_sort(terms.begin(), terms.end(),
                     [](const Term& a, const Term& b) { return compare_monomials(a.monomial, b.monomial) > 0; });
  size_t out = 0;
  for (size_t i = 0; i < terms.size();) {
    size_t j = i + 1;
    for (; j < terms.size() && terms[j].monomial == terms[i].monomial; ++j)
      terms[i].coefficient = terms[i].coefficient + terms[j].coefficient;
    if (!terms[i].coefficient.is_zero()) {
      if (out != i) terms[out] = std::move(terms[i]);
      ++out;
    }
    i = j;
  }
  terms.erase(terms.begin() + static_cast<std::ptrdiff_t>(out), terms.end());
}

void append(Terms& terms, std::span<const Term> more) { terms.insert(terms.end(), more.begin(), more.end()); }

Monomial monomial_content(std::span<const Term> terms) {
  Monomial content = terms.front().monomial;
  for (const Term& t : terms.subspan(1)) {
    Monomial smaller;
    zip(content, t.monomial, [&](SizeAtom atom, int ea, int eb) {
      if (const int e = std::min(ea, eb); e != 0) smaller.push_back({atom, e});
      return true;
    });
    content = std::move(smaller);
  }
  return content;
}

Rational coefficient_content(std::span<const Term> terms) {
  Rational numerators(0), denominators(1);
  for (const Term& t : terms) {
    numerators = gcd(numerators, t.coefficient.numerator());
    denominators = lcm(denominators, t.coefficient.denominator());
  }
  return numerators / denominators;
}

std::vector<Factor> printing_order(const Monomial& m) {
  std::vector<Factor> factors(m.begin(), m.end());
  std::sort(factors.begin(), factors.end(), [](const Factor& a, const Factor& b) { return prints_before(a.atom, b.atom); });
  return factors;
}

std::vector<const Term*> printing_order(std::span<const Term> terms) {
  struct Entry {
    const Term* term;
    int64_t degree = 0;
    std::vector<Factor> factors;
  };
  std::vector<Entry> entries;
  for (const Term& t : terms) {
    Entry& entry = entries.emplace_back(Entry{&t, 0, printing_order(t.monomial)});
    for (const Factor& f : entry.factors) entry.degree += f.exponent;
  }
  std::sort(entries.begin(), entries.end(), [](const Entry& a, const Entry& b) {
    if (a.degree != b.degree) return a.degree > b.degree;
    for (size_t i = 0; i < a.factors.size() && i < b.factors.size(); ++i) {
      const Factor &fa = a.factors[i], &fb = b.factors[i];
      if (!(fa.atom == fb.atom)) return prints_before(fa.atom, fb.atom);
      if (fa.exponent != fb.exponent) return fa.exponent > fb.exponent;
    }
    return a.factors.size() < b.factors.size();
  });
  std::vector<const Term*> order;
  for (const Entry& e : entries) order.push_back(e.term);
  return order;
}

}  // namespace einc
