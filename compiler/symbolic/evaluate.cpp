// SPDX-License-Identifier: Apache-2.0
// Values: exact evaluation at given dims and substitution. Compound atoms are evaluated from their arguments and rebuilt
// in canonical form.
#include <algorithm>

#include "compiler/symbolic/poly_rep.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

std::optional<Rational> evaluate_atom(SizeAtom atom, const Bindings& values) {
  if (atom.compound == 0) {
    const auto it = values.find(atom.dim);
    return it == values.end() ? std::nullopt : std::optional(Rational(it->second));
  }
  const CompoundAtom& c = compound(atom);
  std::optional<Rational> result = c.arguments.front().evaluate(values);
  if (!result) return std::nullopt;
  if (c.kind == SizeAtomKind::floor) return result->floor();
  for (size_t i = 1; i < c.arguments.size(); ++i) {  // max; a sum has one argument
    const auto next = c.arguments[i].evaluate(values);
    if (!next) return std::nullopt;
    if (*next > *result) result = next;
  }
  return result;
}

Poly substitute_atom(SizeAtom atom, const Substitution& map) {
  if (atom.compound == 0) {
    const auto it = map.find(atom.dim);
    return it == map.end() ? atom_power(atom) : it->second;
  }
  const CompoundAtom& c = compound(atom);
  std::vector<Poly> arguments;
  for (const Poly& p : c.arguments) arguments.push_back(p.substitute(map));
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

}  // namespace

std::optional<Rational> Poly::evaluate(const Bindings& values) const {
  Rational sum;
  for (const Term& t : TermList(*this)) {
    Rational product = t.coefficient;
    for (const Factor& f : t.monomial) {
      const auto value = evaluate_atom(f.atom, values);
      if (!value || (value->is_zero() && f.exponent < 0)) return std::nullopt;
      product = product * (f.exponent == 1 ? *value : einc::pow(*value, f.exponent));
    }
    sum = sum + product;
  }
  return sum;
}

std::optional<int64_t> Poly::evaluate_integer(const Bindings& values) const {
  if (!rep_) return small_;
  const auto value = evaluate(values);
  return value ? value->as_integer() : std::nullopt;
}

std::optional<double> Poly::to_double(const Bindings& values) const {
  const auto value = evaluate(values);
  return value ? std::optional(value->to_double()) : std::nullopt;
}

Poly Poly::substitute(const Substitution& map) const {
  if (!rep_ || std::none_of(map.begin(), map.end(), [&](const auto& entry) { return contains(entry.first); })) return *this;
  Poly sum;
  for (const Term& t : rep_->terms) {
    Poly product(t.coefficient);
    for (const Factor& f : t.monomial) product *= einc::pow(substitute_atom(f.atom, map), f.exponent);
    sum += product;
  }
  return sum;
}

bool fits_63_bits(const Poly& poly, const Bindings& values) {
  const auto value = poly.evaluate(values);
  return !value || *value <= Rational(INT64_MAX);
}

}  // namespace einc
