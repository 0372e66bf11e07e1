// SPDX-License-Identifier: Apache-2.0
// The declared dims of a program and what must hold when values are bound. Derived dims are kept as formulas in base dims
// (free and defaulted ones), so heads*head and embed are one size. Binding gives every dim a value or says all that is
// wrong; a free dim without a value leaves what depends on it unset, which is no problem for a report.
#pragma once
#include <string>
#include <vector>

#include "compiler/symbolic/poly.h"

namespace einc {

enum class DimKind : uint8_t { free, defaulted, derived };

struct Dim {
  Name name;
  DimKind kind = DimKind::free;
  int64_t default_value = 0;  // when defaulted
  Poly definition;            // when derived: in base dims
  int source = -1;            // the caller's tag for where it was declared
  friend bool operator==(const Dim&, const Dim&) = default;
};

// divides: left / right is an integer. in_range: 0 <= left < right. fits: left is at most 2^63 - 1 (right unused).
enum class ConditionKind : uint8_t { divides, at_least, less, equal, in_range, fits };

// Must hold for the values in use. `text` says what for ("axis (h d) of rearrange"), `source` is the caller's tag.
struct Condition {
  ConditionKind kind = ConditionKind::divides;
  Poly left, right;
  int source = -1;
  std::string text;
  friend bool operator==(const Condition&, const Condition&) = default;
};

enum class Verdict : uint8_t { always, never, depends };
Verdict decide(const Condition& condition);                                     // for all dims >= 1
std::optional<bool> holds(const Condition& condition, const Bindings& values);  // nullopt: a name is missing
std::string to_string(const Condition& condition);                              // "embed/heads is an integer"

enum class BindProblemKind : uint8_t { unknown_dim, derived_set, below_one, too_large, not_integer, condition };

struct BindProblem {
  BindProblemKind kind;
  Name dim;             // empty for a condition
  int source = -1;      // tag of the dim's declaration or of the condition
  std::string message;  // names the dims and their values
};

struct BindResult {
  Bindings values;                    // every dim with a value, derived ones included
  std::vector<Name> unset;            // free dims without one, in declared order
  std::vector<BindProblem> problems;  // in declared order
  bool ok() const { return problems.empty(); }
};

class DimTable {
 public:
  // A name is declared once; a definition uses base dims declared before (callers substitute derived ones: see size).
  void declare_free(Name name, int source = -1);
  void declare_default(Name name, int64_t value, int source = -1);
  void set_default(Name name, int64_t value);  // of a free dim, which becomes a defaulted one
  void declare_derived(Name name, const Poly& definition, int source = -1);
  // Recorded once however often it is required.
  void require(Condition condition);

  const std::vector<Dim>& dims() const { return dims_; }
  const std::vector<Condition>& conditions() const { return conditions_; }
  const Dim* find(Name name) const;
  // A dim's size in base dims; the name is declared.
  Poly size(Name name) const;
  std::vector<Definition> definitions() const;  // derived dims, for fold_names
  // Of a part of a program whose conditions are looked at as a whole.
  DimTable without_conditions() const;

  // `given` sets free and defaulted dims.
  BindResult bind(const Bindings& given) const;
  // Values for deciding by (contraction orders): given ones, defaults, and `fallback` for free dims. Derived dims whose
  // value is no integer there are rounded down, but are at least 1.
  Bindings values_or(const Bindings& given, int64_t fallback) const;

  friend bool operator==(const DimTable&, const DimTable&) = default;

 private:
  void add(Dim dim);
  bool follows_from_dim(const Condition& c, const BindResult& result) const;
  void bind_given(const Bindings& given, BindResult& result) const;
  void bind_derived(const Dim& dim, BindResult& result) const;

  std::vector<Dim> dims_;
  std::vector<Condition> conditions_;
  std::unordered_map<Name, size_t> index_;
};

}  // namespace einc
