// SPDX-License-Identifier: Apache-2.0
// What a Poly shares behind its handle; for compiler/symbolic only. Terms are sorted descending by a lexicographic order
// on exponents that multiplication by a monomial preserves; it depends on interning order, so nothing visible follows
// it: printing sorts by text. Invariant: factors sorted by atom with exponents other than 0, terms with coefficients
// other than 0 and distinct monomials; an atom of kind sum has only negative exponents; int64 constants have no PolyRep.
#pragma once
#include <atomic>
#include <span>

#include "compiler/symbolic/poly.h"
#include "runtime/base/small_vector.h"

namespace einc {

enum class SizeAtomKind : uint8_t { dim, floor, max, sum };
enum class Integral : uint8_t { no, yes };

// A dim's name, or a handle to a compound atom that carries its kind and whether it takes integer values only.
struct SizeAtom {
  Name dim;
  uint32_t compound = 0;  // 0 for a dim; else index * 8 + integral * 4 + kind

  SizeAtomKind kind() const { return static_cast<SizeAtomKind>(compound & 3); }
  bool is_integral() const { return compound == 0 || (compound & 4) != 0; }
  uint64_t key() const { return (uint64_t{compound} << 32) | dim.id(); }
  friend bool operator==(SizeAtom, SizeAtom) = default;
};

struct Factor {
  SizeAtom atom;
  int32_t exponent = 1;
  friend bool operator==(const Factor&, const Factor&) = default;
};
using Monomial = SmallVector<Factor, 4>;

struct Term {
  Monomial monomial;
  Rational coefficient;
  friend bool operator==(const Term&, const Term&) = default;
};
struct Terms : SmallVector<Term, 1> {
  using SmallVector::SmallVector;
  operator std::span<const Term>() const { return {data(), size()}; }  // NOLINT: its iterators are not contiguous to the library
};

struct PolyRep {
  static constexpr uint32_t kKept = uint32_t{1} << 31;
  mutable std::atomic<uint32_t> references{0};  // kKept: it is not counted
  bool has_sum = false;                         // some factor is a sum (to a negative power)
  bool integral = false;                        // Poly::is_integral
  uint64_t hash = 0;
  Terms terms;

  static const PolyRep* of(const Poly& p) { return p.rep_.get(); }
  static int64_t small(const Poly& p) { return p.small_; }
  // From normalised terms.
  static Poly make(Terms terms);
};

// The terms of any Poly, an int64 constant included. Refers to the Poly it was made from.
class TermList {
 public:
  explicit TermList(const Poly& p) {
    if (const PolyRep* rep = PolyRep::of(p)) {
      view_ = rep->terms;
    } else if (!p.is_zero()) {
      constant_.coefficient = Rational(PolyRep::small(p));
      view_ = {&constant_, 1};
    }
  }
  TermList(const TermList&) = delete;
  TermList& operator=(const TermList&) = delete;
  const Term* begin() const { return view_.data(); }
  const Term* end() const { return view_.data() + view_.size(); }
  size_t size() const { return view_.size(); }
  const Term& front() const { return view_.front(); }
  operator std::span<const Term>() const { return view_; }  // NOLINT

 private:
  Term constant_;
  std::span<const Term> view_;
};

// floor: one argument. max: two or more, sorted by text. sum: one, with content 1 and a positive first printed term.
struct CompoundAtom {
  SizeAtomKind kind;
  std::vector<Poly> arguments;
  std::string text;
  int depth = 1;
};
SizeAtom intern_atom(SizeAtomKind kind, std::vector<Poly> arguments, Integral integral);
const CompoundAtom& compound(SizeAtom atom);  // lives as long as the process
Poly atom_power(SizeAtom atom, int exponent = 1);
// Rank and text that order atoms for printing: dims first, each kind by text.
bool prints_before(SizeAtom a, SizeAtom b);
const std::string& atom_text(SizeAtom atom);

// Monomials and term lists (terms.cpp).
int compare_monomials(const Monomial& a, const Monomial& b);  // lexicographic: -1, 0, 1
Monomial multiply(const Monomial& a, const Monomial& b);
Monomial power(const Monomial& m, int exponent);
int exponent_of(const Monomial& m, SizeAtom atom);
bool is_integral(const Monomial& m);
Monomial without(const Monomial& m, SizeAtom atom);
Terms add(std::span<const Term> a, std::span<const Term> b);
Terms multiply(std::span<const Term> a, std::span<const Term> b);
Terms multiply(std::span<const Term> a, const Term& b);
void normalise(Terms& terms);  // sorts, merges equal monomials, drops zeros
void append(Terms& terms, std::span<const Term> more);
// The largest monomial that divides every term, with negative exponents where some term has them.
Monomial monomial_content(std::span<const Term> terms);
// Positive rational c such that the coefficients over c are integers without a common divisor.
Rational coefficient_content(std::span<const Term> terms);

// Exact quotient of Laurent polynomials when it exists and is not unreasonably long (divide.cpp). b is not empty.
std::optional<Terms> exact_quotient(std::span<const Term> a, std::span<const Term> b);
// From terms in any order: normalises, and cancels sums that divide their numerators.
Poly finish(Terms terms);

// terms.cpp: the order of printing.
std::vector<const Term*> printing_order(std::span<const Term> terms);
std::vector<Factor> printing_order(const Monomial& m);

}  // namespace einc
