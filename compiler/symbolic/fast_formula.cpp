// SPDX-License-Identifier: Apache-2.0
#include "compiler/symbolic/fast_formula.h"

#include <algorithm>
#include <cmath>

#include "compiler/symbolic/poly_rep.h"
#include "runtime/base/check.h"

namespace einc {

FastFormula::FastFormula(const Poly& formula, std::span<const Name> variables, const Bindings& fixed) {
  EINC_CHECK(variables.size() <= kMaxVariables, "{} variables", variables.size());
  Substitution known;
  for (const Name name : formula.free_names())
    if (std::ranges::find(variables, name) == variables.end()) known.emplace(name, fixed.at(name));
  const Poly rest = formula.substitute(known);
  for (const einc::Term& term : TermList(rest)) {
    Term& made = terms_.emplace_back();
    made.coefficient = term.coefficient.to_double();
    for (const Factor& factor : term.monomial) {
      const auto at = std::ranges::find(variables, factor.atom.dim);
      if (factor.atom.kind() == SizeAtomKind::dim && at != variables.end())
        made.exponents[static_cast<size_t>(at - variables.begin())] = factor.exponent;
      else
        as_written_ = true;
    }
  }
  if (!as_written_) return;
  terms_.clear();
  formula_ = rest;
  variables_.assign(variables.begin(), variables.end());
}

double FastFormula::operator()(std::span<const double> values) const {
  if (as_written_) {
    Bindings bound;
    for (size_t i = 0; i < variables_.size(); ++i) bound.emplace(variables_[i], std::llround(values[i]));
    return formula_.to_double(bound).value_or(0);
  }
  double sum = 0;
  for (const Term& term : terms_) {
    double product = term.coefficient;
    for (size_t i = 0; i < values.size(); ++i) {
      for (int e = term.exponents[i]; e > 0; --e) product *= values[i];
      for (int e = term.exponents[i]; e < 0; ++e) product /= values[i];
    }
    sum += product;
  }
  return sum;
}

}  // namespace einc
