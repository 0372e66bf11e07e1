// SPDX-License-Identifier: Apache-2.0
// Canonical text. The order of terms and factors is by degree and text, never by interning order, and parse_poly reads
// back the same value. The argument of a floor is written as one fraction where that keeps its structure.
#include "compiler/symbolic/print.h"

#include "runtime/base/check.h"

namespace einc {
namespace {

std::string monomial_text(const Monomial& m) {
  std::string text;
  for (const Factor& f : printing_order(m)) {
    if (!text.empty()) text += '*';
    text += atom_text(f.atom);
    if (f.exponent != 1) text += fmt::format("^{}", f.exponent);
  }
  return text;
}

std::string terms_text(std::span<const Term> terms) {
  if (terms.empty()) return "0";
  std::string text;
  for (const Term* t : printing_order(terms)) {
    const bool negative = t->coefficient.sign() < 0;
    if (!text.empty()) text += negative ? " - " : " + ";
    if (text.empty() && negative) text += '-';
    const Rational size = negative ? -t->coefficient : t->coefficient;
    const std::string monomial = monomial_text(t->monomial);
    if (monomial.empty() || !size.is_one()) text += size.str();
    if (!monomial.empty() && !size.is_one()) text += '*';
    text += monomial;
  }
  return text;
}

// The denominator when x can be written numerator/denominator such that division gives back the same terms: dims and a
// number, and at most one sum, which then every term must have once.
std::optional<Term> denominator(std::span<const Term> terms) {
  Term result{power(monomial_content(terms), -1), Rational(1)};
  for (const Term& t : terms) result.coefficient = lcm(result.coefficient, t.coefficient.denominator());
  Monomial kept;
  int sums = 0;
  for (const Factor& f : result.monomial) {
    if (f.exponent < 0) continue;  // a factor of the whole numerator
    if (f.atom.kind() == SizeAtomKind::sum) {
      if (++sums > 1 || f.exponent != 1) return std::nullopt;
      for (const Term& t : terms)
        if (exponent_of(t.monomial, f.atom) != -1) return std::nullopt;
    }
    kept.push_back(f);
  }
  result.monomial = std::move(kept);
  return result;
}

}  // namespace

std::string fraction_text(const Poly& x) {
  const TermList terms(x);
  const auto below = denominator(terms);
  if (!below || (below->monomial.empty() && below->coefficient.is_one())) return x.str();
  const Terms above = multiply(terms, *below);
  Terms below_terms;
  below_terms.push_back(*below);
  const std::string numerator = terms_text(above), text = terms_text(below_terms);
  const bool one_factor = below->monomial.size() + (below->coefficient.is_one() ? 0 : 1) == 1;
  return fmt::format("{}/{}", above.size() > 1 ? "(" + numerator + ")" : numerator, one_factor ? text : "(" + text + ")");
}

std::string compound_text(SizeAtomKind kind, const std::vector<Poly>& arguments) {
  switch (kind) {
    case SizeAtomKind::dim:
      break;
    case SizeAtomKind::floor:
      return "floor(" + fraction_text(arguments.front()) + ")";
    case SizeAtomKind::sum:
      return "(" + arguments.front().str() + ")";
    case SizeAtomKind::max: {
      std::string text = "max(";
      for (const Poly& p : arguments) text += (text.size() > 4 ? ", " : "") + p.str();
      return text + ")";
    }
  }
  EINC_CHECK(false, "a dim is no compound atom");
  return {};
}

std::string Poly::str() const { return rep_ ? terms_text(rep_->terms) : fmt::format("{}", small_); }

}  // namespace einc
