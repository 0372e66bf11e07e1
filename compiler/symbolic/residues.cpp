// SPDX-License-Identifier: Apache-2.0
// If Q = c q divides P, with c the content of Q's coefficients and q an integer, then P / c is an integer. With L the common
// denominator of its coefficients, A = L P / c has integer coefficients, and must be 0 modulo L somewhere.
#include "compiler/symbolic/residues.h"

#include <algorithm>

#include "compiler/symbolic/poly_rep.h"

namespace einc {
namespace {

constexpr int64_t kLargestModulus = 1 << 20;
constexpr int64_t kMostPoints = 4096;  // of residues that are tried

// A polynomial of integer values: its atoms are integers and stand to positive powers.
bool is_polynomial(const TermList& terms) {
  return std::all_of(terms.begin(), terms.end(), [](const Term& term) {
    return std::all_of(term.monomial.begin(), term.monomial.end(),
                       [](const Factor& f) { return f.exponent > 0 && f.atom.is_integral() && f.atom.kind() != SizeAtomKind::sum; });
  });
}

int64_t residue(const Rational& integer, int64_t modulus) {
  const Rational m(modulus);
  return *(integer - m * (integer / m).floor()).as_integer();
}

int64_t power_mod(int64_t base, int exponent, int64_t modulus) {
  int64_t result = 1 % modulus;
  for (; exponent > 0; exponent /= 2, base = base * base % modulus)
    if (exponent % 2 == 1) result = result * base % modulus;
  return result;
}

struct ResidueTerm {
  int64_t coefficient;
  std::vector<std::pair<size_t, int>> factors;  // position of the atom, exponent
};

bool vanishes_somewhere(const std::vector<ResidueTerm>& terms, size_t atoms, int64_t modulus) {
  std::vector<int64_t> point(atoms, 0);
  for (;;) {
    int64_t value = 0;
    for (const ResidueTerm& term : terms) {
      int64_t product = term.coefficient;
      for (const auto& [atom, exponent] : term.factors) product = product * power_mod(point[atom], exponent, modulus) % modulus;
      value = (value + product) % modulus;
    }
    if (value == 0) return true;
    size_t next = 0;
    while (next < atoms && ++point[next] == modulus) point[next++] = 0;
    if (next == atoms) return false;
  }
}

}  // namespace

bool never_divides(const Poly& left, const Poly& right) {
  const TermList numerator(left), divisor(right);
  if (left.is_zero() || right.is_zero() || !is_polynomial(numerator) || !is_polynomial(divisor)) return false;
  const Rational content = coefficient_content(divisor);
  Rational denominators(1);
  for (const Term& term : numerator) denominators = lcm(denominators, (term.coefficient / content).denominator());
  const auto modulus = denominators.as_integer();
  if (!modulus || *modulus == 1 || *modulus > kLargestModulus) return false;

  std::vector<SizeAtom> atoms;
  std::vector<ResidueTerm> terms;
  int64_t common = *modulus, constant = 0;  // common divisor of the modulus and what the dims are multiplied by
  for (const Term& term : numerator) {
    ResidueTerm reduced{residue(term.coefficient / content * denominators, *modulus), {}};
    if (reduced.coefficient == 0) continue;
    for (const Factor& factor : term.monomial) {
      const auto place = std::find(atoms.begin(), atoms.end(), factor.atom);
      reduced.factors.emplace_back(place - atoms.begin(), factor.exponent);
      if (place == atoms.end()) atoms.push_back(factor.atom);
    }
    if (reduced.factors.empty())
      constant = reduced.coefficient;
    else
      common = *gcd(Rational(common), Rational(reduced.coefficient)).as_integer();
    terms.push_back(std::move(reduced));
  }
  if (constant % common != 0) return true;
  int64_t points = 1;
  for (size_t i = 0; i < atoms.size() && points <= kMostPoints; ++i) points *= *modulus;
  return points <= kMostPoints && !vanishes_somewhere(terms, atoms.size(), *modulus);
}

}  // namespace einc
