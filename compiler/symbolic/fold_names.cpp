// SPDX-License-Identifier: Apache-2.0
// Writing derived dims where their definitions occur. A definition c*m matches a term whose monomial m divides with all
// exponents in m's direction, or against it (1/(heads*head) is embed^-1). With c = 1 it is taken as often as it fits; with
// another c only once and where that makes the coefficient smaller or whole, so 4*embed^2 does not become embed*hidden.
#include <algorithm>

#include "compiler/symbolic/poly_rep.h"

namespace einc {
namespace {

struct Pattern {
  Name name;
  Monomial monomial;
  Rational coefficient;
};

std::vector<Pattern> patterns_of(std::span<const Definition> definitions) {
  std::vector<Pattern> patterns;
  for (const Definition& d : definitions) {
    const TermList terms(d.value);
    if (terms.size() != 1) continue;
    const Term& t = terms.front();
    const bool plain_dim = t.coefficient.is_one() && t.monomial.size() == 1 && t.monomial[0].exponent == 1;
    if (!t.monomial.empty() && !plain_dim && t.coefficient.sign() > 0) patterns.push_back({d.name, t.monomial, t.coefficient});
  }
  std::stable_partition(patterns.begin(), patterns.end(), [](const Pattern& p) { return p.coefficient.is_one(); });
  return patterns;
}

// How often the pattern fits: negative when it fits inverted.
int count_fits(const Monomial& m, const Monomial& pattern) {
  int64_t fits = INT32_MAX;
  int direction = 0;
  for (const Factor& f : pattern) {
    const int e = exponent_of(m, f.atom);
    const int towards = e == 0 ? 0 : (e > 0) == (f.exponent > 0) ? 1 : -1;
    if (towards == 0 || (direction != 0 && towards != direction)) return 0;
    direction = towards;
    fits = std::min(fits, std::abs(int64_t{e}) / std::abs(int64_t{f.exponent}));
  }
  return static_cast<int>(fits) * direction;
}

Poly fold(const Poly& poly, const std::vector<Pattern>& patterns);

Poly fold_atom(SizeAtom atom, const std::vector<Pattern>& patterns) {
  const CompoundAtom& c = compound(atom);
  std::vector<Poly> arguments;
  for (const Poly& p : c.arguments) arguments.push_back(fold(p, patterns));
  switch (c.kind) {
    case SizeAtomKind::floor:
      return floor(arguments.front());
    case SizeAtomKind::max:
      return max_of(arguments);
    case SizeAtomKind::sum:
    case SizeAtomKind::dim:
      break;
  }
  return arguments.front();
}

Poly fold_term(Term term, const std::vector<Pattern>& patterns) {
  Poly names(1);
  for (const Pattern& p : patterns) {
    const int fits = count_fits(term.monomial, p.monomial);
    if (fits == 0) continue;
    if (!p.coefficient.is_one() &&
        (fits != 1 || (p.coefficient < Rational(1)) == term.coefficient.is_integer() || !(term.coefficient / p.coefficient).is_integer()))
      continue;
    term.monomial = multiply(term.monomial, power(p.monomial, -fits));
    term.coefficient = term.coefficient / pow(p.coefficient, fits);
    names *= pow(Poly::dim(p.name), fits);
  }
  Poly result = Poly(term.coefficient) * names;
  for (const Factor& f : term.monomial)
    result *= f.atom.compound == 0 ? atom_power(f.atom, f.exponent) : pow(fold_atom(f.atom, patterns), f.exponent);
  return result;
}

Poly fold(const Poly& poly, const std::vector<Pattern>& patterns) {
  Terms terms;
  for (const Term& t : TermList(poly)) append(terms, TermList(fold_term(t, patterns)));
  return finish(std::move(terms));
}

}  // namespace

Poly fold_names(const Poly& poly, std::span<const Definition> definitions) {
  const std::vector<Pattern> patterns = patterns_of(definitions);
  return patterns.empty() || poly.is_constant() ? poly : fold(poly, patterns);
}

Poly without_floors(const Poly& poly, std::span<const Definition> definitions) {
  const TermList terms(poly);
  const bool has_floor = std::any_of(terms.begin(), terms.end(), [](const Term& t) {
    return std::any_of(t.monomial.begin(), t.monomial.end(), [](const Factor& f) { return f.atom.kind() == SizeAtomKind::floor; });
  });
  if (!has_floor) return poly;
  Substitution back;
  for (const Definition& d : definitions) back.emplace(d.name, d.value);
  return fold_names(poly, definitions).substitute(back);
}

}  // namespace einc
