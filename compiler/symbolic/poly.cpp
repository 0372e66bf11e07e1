// SPDX-License-Identifier: Apache-2.0
// Construction and ring arithmetic. Constants that fit stay in the handle; one term times one term and one term plus
// another build one shared node without sorting.
#include "compiler/symbolic/poly.h"

#include <algorithm>
#include <cmath>
#include <mutex>
#include <unordered_set>

#include "compiler/symbolic/hash_mix.h"
#include "compiler/symbolic/poly_rep.h"
#include "runtime/base/check.h"

namespace einc {

void intrusive_ptr_add_ref(const PolyRep* p) noexcept {
  if (p->references.load(std::memory_order_relaxed) != PolyRep::kKept) p->references.fetch_add(1, std::memory_order_relaxed);
}
void intrusive_ptr_release(const PolyRep* p) noexcept {
  if (p->references.load(std::memory_order_relaxed) == PolyRep::kKept) return;
  if (p->references.fetch_sub(1, std::memory_order_acq_rel) == 1) delete p;
}

Poly PolyRep::make(Terms terms) {
  if (terms.empty()) return Poly();
  if (terms.size() == 1 && terms.front().monomial.empty())
    if (const auto value = terms.front().coefficient.as_integer()) return Poly(*value);
  boost::intrusive_ptr<PolyRep> rep(new PolyRep);
  rep->integral = true;
  uint64_t h = terms.size();
  for (const Term& t : terms) {
    h = mix_hash(h, t.coefficient.hash());
    if (!t.coefficient.is_integer()) rep->integral = false;
    for (const Factor& f : t.monomial) {
      h = mix_hash(h, f.atom.key() ^ (static_cast<uint64_t>(f.exponent) << 48));
      if (f.exponent < 0 || !f.atom.is_integral()) rep->integral = false;
      if (f.atom.kind() == SizeAtomKind::sum) rep->has_sum = true;
    }
  }
  rep->hash = h;
  rep->terms = std::move(terms);
  return Poly(boost::intrusive_ptr<const PolyRep>(std::move(rep)));
}

Poly::Poly(const Rational& value) {
  if (value.is_zero()) return;
  Terms terms;
  terms.push_back({{}, value});
  *this = PolyRep::make(std::move(terms));
}

Poly Poly::dim(Name name) {
  EINC_CHECK(!name.empty(), "a dim without a name");
  return atom_power(SizeAtom{name, 0}).kept();
}

namespace {

struct KeptPolys {
  std::mutex mutex;
  std::unordered_set<Poly> polys;
};

}  // namespace

Poly Poly::kept() const {
  if (!rep_) return *this;
  static KeptPolys* const all = new KeptPolys;  // never destroyed: statics may hold polynomials
  const std::lock_guard lock(all->mutex);
  if (const auto known = all->polys.find(*this); known != all->polys.end()) return *known;
  const Poly own = PolyRep::make(rep_->terms);  // one that nobody has counted yet
  own.rep_->references = PolyRep::kKept;
  return *all->polys.insert(own).first;
}

bool Poly::is_constant() const { return !rep_ || (rep_->terms.size() == 1 && rep_->terms.front().monomial.empty()); }
size_t Poly::term_count() const { return rep_ ? rep_->terms.size() : small_ != 0; }
bool Poly::is_small() const {
  constexpr size_t kTerms = 64;
  constexpr int64_t kDegree = 63;
  constexpr double kMagnitude = 1e300;
  if (!rep_) return true;
  if (rep_->terms.size() > kTerms) return false;
  for (const Term& term : rep_->terms) {
    int64_t degree = 0;
    for (const Factor& factor : term.monomial) degree += std::abs(int64_t{factor.exponent});
    const double numerator = term.coefficient.numerator().to_double(), denominator = term.coefficient.denominator().to_double();
    if (degree > kDegree || std::abs(numerator) > kMagnitude || denominator > kMagnitude) return false;
  }
  return true;
}
bool Poly::is_monomial() const { return rep_ ? rep_->terms.size() == 1 : small_ != 0; }
bool Poly::is_integral() const { return !rep_ || rep_->integral; }

std::optional<Rational> Poly::as_rational() const {
  if (!is_constant()) return std::nullopt;
  return rep_ ? rep_->terms.front().coefficient : Rational(small_);
}

size_t Poly::hash() const { return rep_ ? rep_->hash : mix_hash(0, static_cast<uint64_t>(small_)); }

bool operator==(const Poly& a, const Poly& b) {
  if (!a.rep_ || !b.rep_) return !a.rep_ && !b.rep_ && a.small_ == b.small_;
  return a.rep_ == b.rep_ || (a.rep_->hash == b.rep_->hash && a.rep_->terms == b.rep_->terms);
}

Poly Poly::operator-() const {
  if (!rep_) return Poly(-small_);
  return PolyRep::make(multiply(TermList(*this), Term{{}, Rational(-1)}));
}

namespace {

Poly close(Terms terms, bool has_sum) { return has_sum ? finish(std::move(terms)) : PolyRep::make(std::move(terms)); }

bool has_sum(const Poly& a, const Poly& b) {
  const PolyRep *x = PolyRep::of(a), *y = PolyRep::of(b);
  return (x && x->has_sum) || (y && y->has_sum);
}

}  // namespace

Poly operator+(const Poly& a, const Poly& b) {
  if (a.is_zero()) return b;
  if (b.is_zero()) return a;
  if (int64_t sum = 0; !a.rep_ && !b.rep_ && !__builtin_add_overflow(a.small_, b.small_, &sum)) return Poly(sum);
  return close(add(TermList(a), TermList(b)), has_sum(a, b));
}

Poly operator-(const Poly& a, const Poly& b) { return a + (-b); }

Poly operator*(const Poly& a, const Poly& b) {
  if (a.is_zero() || b.is_zero()) return Poly();
  if (a.is_one()) return b;
  if (b.is_one()) return a;
  if (int64_t product = 0; !a.rep_ && !b.rep_ && !__builtin_mul_overflow(a.small_, b.small_, &product)) return Poly(product);
  return close(multiply(TermList(a), TermList(b)), has_sum(a, b));
}

bool Poly::contains(Name dim) const {
  for (const Term& t : TermList(*this))
    for (const Factor& f : t.monomial) {
      if (f.atom == SizeAtom{dim, 0}) return true;
      if (f.atom.compound == 0) continue;
      const auto& arguments = compound(f.atom).arguments;
      if (std::any_of(arguments.begin(), arguments.end(), [&](const Poly& p) { return p.contains(dim); })) return true;
    }
  return false;
}

namespace {

void collect_names(const Poly& p, std::vector<Name>& names) {
  for (const Term& t : TermList(p))
    for (const Factor& f : t.monomial) {
      if (f.atom.compound != 0) {
        for (const Poly& argument : compound(f.atom).arguments) collect_names(argument, names);
      } else if (std::find(names.begin(), names.end(), f.atom.dim) == names.end()) {
        names.push_back(f.atom.dim);
      }
    }
}

}  // namespace

std::vector<Name> Poly::free_names() const {
  std::vector<Name> names;
  collect_names(*this, names);
  std::sort(names.begin(), names.end(), [](Name a, Name b) { return a.str() < b.str(); });
  return names;
}

}  // namespace einc
