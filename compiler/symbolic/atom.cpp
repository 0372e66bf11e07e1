// SPDX-License-Identifier: Apache-2.0
// Compound atoms, interned: one process-wide table that only grows. Looking one up takes a shared lock, but polynomials
// of plain dims never come here.
#include <deque>
#include <mutex>
#include <shared_mutex>

#include "compiler/symbolic/hash_mix.h"
#include "compiler/symbolic/poly_rep.h"
#include "compiler/symbolic/print.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr int kDepthLimit = 1024;  // of atoms inside atoms: functions over them recurse

struct Key {
  SizeAtomKind kind;
  std::vector<Poly> arguments;
  friend bool operator==(const Key&, const Key&) = default;
};
struct KeyHash {
  size_t operator()(const Key& key) const {
    uint64_t h = static_cast<uint64_t>(key.kind);
    for (const Poly& p : key.arguments) h = mix_hash(h, p.hash());
    return h;
  }
};

struct Table {
  std::shared_mutex mutex;
  std::deque<CompoundAtom> atoms{CompoundAtom{SizeAtomKind::dim, {}, {}, 0}};  // index 0 stands for dims
  std::unordered_map<Key, uint32_t, KeyHash> handles;
};

Table& table() {
  static Table* const t = new Table;  // never destroyed: statics may hold polynomials
  return *t;
}

int depth_of(const Poly& p) {
  int depth = 0;
  for (const Term& t : TermList(p))
    for (const Factor& f : t.monomial)
      if (f.atom.compound != 0) depth = std::max(depth, compound(f.atom).depth);
  return depth;
}

}  // namespace

SizeAtom intern_atom(SizeAtomKind kind, std::vector<Poly> arguments, Integral integral) {
  Table& t = table();
  Key key{kind, arguments};
  {
    std::shared_lock lock(t.mutex);
    if (auto it = t.handles.find(key); it != t.handles.end()) return SizeAtom{Name(), it->second};
  }
  CompoundAtom atom{kind, std::move(arguments), {}, 0};
  for (const Poly& p : atom.arguments) atom.depth = std::max(atom.depth, 1 + depth_of(p));
  EINC_CHECK(atom.depth <= kDepthLimit, "floor and max nested deeper than {}", kDepthLimit);
  atom.text = compound_text(kind, atom.arguments);
  std::unique_lock lock(t.mutex);
  const auto handle = static_cast<uint32_t>(t.atoms.size() * 8 + (integral == Integral::yes ? 4 : 0) + static_cast<size_t>(kind));
  const auto [it, is_new] = t.handles.emplace(std::move(key), handle);
  if (is_new) t.atoms.push_back(std::move(atom));
  return SizeAtom{Name(), it->second};
}

const CompoundAtom& compound(SizeAtom atom) {
  Table& t = table();
  std::shared_lock lock(t.mutex);
  return t.atoms[atom.compound / 8];
}

Poly atom_power(SizeAtom atom, int exponent) {
  Term term{{}, Rational(1)};
  if (exponent != 0) term.monomial.push_back({atom, exponent});
  Terms terms;
  terms.push_back(std::move(term));
  return PolyRep::make(std::move(terms));
}

const std::string& atom_text(SizeAtom atom) { return atom.compound == 0 ? atom.dim.str() : compound(atom).text; }

bool prints_before(SizeAtom a, SizeAtom b) {
  if ((a.compound == 0) != (b.compound == 0)) return a.compound == 0;
  return !(a == b) && atom_text(a) < atom_text(b);
}

}  // namespace einc
