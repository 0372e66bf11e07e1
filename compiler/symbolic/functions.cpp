// SPDX-License-Identifier: Apache-2.0
// floor and max in canonical form. floor(w + x) = w + floor(x) for whole w, and floor((floor(y) + r)/m) = floor((y + r)/m)
// for whole r and m, so the output sizes of stacked convolutions stay flat. max drops what another argument reaches.
#include <algorithm>

#include "compiler/symbolic/order.h"
#include "compiler/symbolic/poly_rep.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

struct Parts {
  Poly whole, rest;
};

// Terms that are integers whatever the dims, and the others with a constant in [0, 1).
Parts split_whole(const Poly& x) {
  Terms whole, rest;
  for (const Term& t : TermList(x)) {
    if (t.monomial.empty()) {
      const Rational below = t.coefficient.floor();
      if (!below.is_zero()) whole.push_back({{}, below});
      if (!(t.coefficient == below)) rest.push_back({{}, t.coefficient - below});
    } else {
      (t.coefficient.is_integer() && is_integral(t.monomial) ? whole : rest).push_back(t);
    }
  }
  return {PolyRep::make(std::move(whole)), PolyRep::make(std::move(rest))};
}

// (floor(y) + r)/m as (y + r)/m, where floor(y) is the only floor outside products, m and r are whole.
std::optional<Poly> without_inner_floor(const Poly& x) {
  const Term* inner = nullptr;
  for (const Term& t : TermList(x)) {
    if (t.monomial.size() != 1 || t.monomial[0].exponent != 1 || t.monomial[0].atom.kind() != SizeAtomKind::floor) continue;
    if (inner) return std::nullopt;
    inner = &t;
  }
  if (!inner) return std::nullopt;
  const Rational m = Rational(1) / inner->coefficient;
  if (!m.is_integer() || m.sign() < 0) return std::nullopt;
  const Poly bare = atom_power(inner->monomial[0].atom), share(inner->coefficient);
  const Poly others = x - bare * share;
  if (!(others * Poly(m)).is_integral()) return std::nullopt;
  return others + compound(inner->monomial[0].atom).arguments.front() * share;
}

bool drops_below(const Poly& a, const Poly& b) {
  const Ordering order = compare(a, b);
  return order == Ordering::less || order == Ordering::less_equal || order == Ordering::equal;
}

}  // namespace

Poly floor(const Poly& x) {
  Parts parts = split_whole(x);
  if (parts.rest.is_zero()) return parts.whole;
  if (const auto flat = without_inner_floor(parts.rest)) return parts.whole + floor(*flat);
  if (provably_at_least(parts.rest, Poly(0)) && compare(parts.rest, Poly(1)) == Ordering::less) return parts.whole;
  return parts.whole + atom_power(intern_atom(SizeAtomKind::floor, {parts.rest}, Integral::yes));
}

Poly floor_divide(const Poly& a, const Poly& b) { return floor(divide(a, b)); }

Poly max_of(std::span<const Poly> values) {
  EINC_CHECK(!values.empty(), "max of nothing");
  std::vector<Poly> flat;
  for (const Poly& v : values) {
    const TermList terms(v);
    const bool is_max = terms.size() == 1 && terms.front().coefficient.is_one() && terms.front().monomial.size() == 1 &&
                        terms.front().monomial[0].exponent == 1 && terms.front().monomial[0].atom.kind() == SizeAtomKind::max;
    if (!is_max) {
      flat.push_back(v);
    } else {
      const auto& inner = compound(terms.front().monomial[0].atom).arguments;
      flat.insert(flat.end(), inner.begin(), inner.end());
    }
  }
  std::vector<std::pair<std::string, Poly>> kept;  // text orders them, so that equal sets give one atom
  for (size_t i = 0; i < flat.size(); ++i) {
    bool dropped = false;
    for (size_t j = 0; j < flat.size() && !dropped; ++j)
      dropped = i != j && drops_below(flat[i], flat[j]) && (j < i || !drops_below(flat[j], flat[i]));
    if (!dropped) kept.emplace_back(flat[i].str(), flat[i]);
  }
  std::sort(kept.begin(), kept.end(), [](const auto& a, const auto& b) { return a.first < b.first; });
  if (kept.size() == 1) return kept.front().second;
  std::vector<Poly> arguments;
  Integral integral = Integral::yes;
  for (auto& [text, p] : kept) {
    if (!p.is_integral()) integral = Integral::no;
    arguments.push_back(std::move(p));
  }
  return atom_power(intern_atom(SizeAtomKind::max, std::move(arguments), integral));
}

Poly max_of(const Poly& a, const Poly& b) {
  const Poly both[] = {a, b};
  return max_of(both);
}

Poly min_of(const Poly& a, const Poly& b) { return -max_of(-a, -b); }

}  // namespace einc
