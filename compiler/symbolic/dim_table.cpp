// SPDX-License-Identifier: Apache-2.0
// Declared dims, their conditions, and binding. Everything is exact: a derived dim or a condition is evaluated as a
// rational number and only then compared with what a size may be.
#include "compiler/symbolic/dim_table.h"

#include <algorithm>

#include "compiler/symbolic/order.h"
#include "compiler/symbolic/print.h"
#include "compiler/symbolic/residues.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

// left > right, or left >= right where equality is enough.
enum class Equality : uint8_t { fails, holds };
Verdict decide_order(Ordering o, Equality equality) {
  const bool equal_is_enough = equality == Equality::holds;
  switch (o) {
    case Ordering::equal:
      return equal_is_enough ? Verdict::always : Verdict::never;
    case Ordering::greater:
      return Verdict::always;
    case Ordering::greater_equal:
      return equal_is_enough ? Verdict::always : Verdict::depends;
    case Ordering::less:
      return Verdict::never;
    case Ordering::less_equal:
      return equal_is_enough ? Verdict::depends : Verdict::never;
    case Ordering::unknown:
      break;
  }
  return Verdict::depends;
}

Verdict decide_division(const Poly& left, const Poly& right) {
  if (right.is_zero()) return Verdict::never;
  const Poly quotient = divide(left, right);
  if (quotient.is_integral()) return Verdict::always;
  if (quotient.is_constant()) return Verdict::never;
  const bool below_one = compare(quotient, Poly(1)) == Ordering::less && provably_positive(quotient);
  return below_one || never_divides(left, right) ? Verdict::never : Verdict::depends;
}

Verdict both(Verdict a, Verdict b) {
  if (a == Verdict::never || b == Verdict::never) return Verdict::never;
  return a == Verdict::always ? b : a;
}

// "embed = 768, heads = 7": the names of the polynomials with their values.
std::string values_text(std::initializer_list<const Poly*> polys, const Bindings& values) {
  std::vector<Name> names;
  for (const Poly* p : polys)
    for (const Name n : p->free_names())
      if (std::find(names.begin(), names.end(), n) == names.end()) names.push_back(n);
  std::string text;
  for (const Name n : names) text += fmt::format("{}{} = {}", text.empty() ? "" : ", ", n.str(), values.at(n));
  return text;
}

// "2*heads = 14", or "3" alone.
std::string with_value(const Poly& size, const Bindings& values) {
  const std::string text = size.str();
  const auto value = size.evaluate(values);
  return value && value->str() != text ? text + " = " + value->str() : text;
}

// What is wrong with the values: "d = 7 is not a multiple of 2".
std::string broken(const Condition& c, const Bindings& values) {
  const std::string left = with_value(c.left, values), right = with_value(c.right, values);
  const auto is_short = [](const Poly& size) { return size.str().find_first_of(" */^-") == std::string::npos; };
  const std::string names = is_short(c.left) && is_short(c.right) ? "" : values_text({&c.left, &c.right}, values);
  const std::string with = names.empty() ? "" : " (" + names + ")";
  switch (c.kind) {
    case ConditionKind::divides:
      return fmt::format("{} is not a multiple of {}{}", left, right, with);
    case ConditionKind::at_least:
      return fmt::format("{} is less than {}{}", left, right, with);
    case ConditionKind::less:
      return fmt::format("{} is not less than {}{}", left, right, with);
    case ConditionKind::equal:
      return fmt::format("{} is not {}{}", left, right, with);
    case ConditionKind::in_range:
      return fmt::format("{} is not from 0 to below {}{}", left, right, with);
    case ConditionKind::fits:
      return fmt::format("{} is more than 2^63 - 1{}", left, with);
  }
  return {};
}

std::string names_text(const std::vector<Name>& names) {
  std::string text;
  for (size_t i = 0; i < names.size(); ++i) text += (i == 0 ? "" : i + 1 == names.size() ? " or " : ", ") + names[i].str();
  return text;
}

}  // namespace

Verdict decide(const Condition& c) {
  switch (c.kind) {
    case ConditionKind::divides:
      return decide_division(c.left, c.right);
    case ConditionKind::at_least:
      return decide_order(compare(c.left, c.right), Equality::holds);
    case ConditionKind::less:
      return decide_order(compare(c.right, c.left), Equality::fails);
    case ConditionKind::equal: {
      const Ordering o = compare(c.left, c.right);
      if (o == Ordering::equal) return Verdict::always;
      return o == Ordering::less || o == Ordering::greater ? Verdict::never : Verdict::depends;
    }
    case ConditionKind::in_range:
      return both(decide_order(compare(c.left, Poly(0)), Equality::holds), decide_order(compare(c.right, c.left), Equality::fails));
    case ConditionKind::fits:
      return decide_order(compare(Poly(INT64_MAX), c.left), Equality::holds);
  }
  return Verdict::depends;
}

namespace {

std::optional<bool> holds(const Condition& c, const std::optional<Rational>& left, const std::optional<Rational>& right) {
  if (!left || !right) return std::nullopt;
  switch (c.kind) {
    case ConditionKind::divides:
      return !right->is_zero() && (*left / *right).is_integer();
    case ConditionKind::at_least:
      return *left >= *right;
    case ConditionKind::less:
      return *left < *right;
    case ConditionKind::equal:
      return *left == *right;
    case ConditionKind::in_range:
      return left->sign() >= 0 && *left < *right;
    case ConditionKind::fits:
      return *left <= Rational(INT64_MAX);
  }
  return std::nullopt;
}

}  // namespace

std::optional<bool> holds(const Condition& c, const Bindings& values) {
  return holds(c, c.left.evaluate(values), c.right.evaluate(values));
}

std::string to_string(const Condition& c) {
  const std::string left = c.left.str(), right = c.right.str();
  switch (c.kind) {
    case ConditionKind::divides: {
      const bool plain_right = right.find_first_of(" */^-") == std::string::npos;
      return fmt::format("{}/{} is an integer", c.left.is_monomial() ? left : "(" + left + ")", plain_right ? right : "(" + right + ")");
    }
    case ConditionKind::at_least:
      return fmt::format("{} is at least {}", left, right);
    case ConditionKind::less:
      return fmt::format("{} is less than {}", left, right);
    case ConditionKind::equal:
      return fmt::format("{} equals {}", left, right);
    case ConditionKind::in_range:
      return fmt::format("{} is at least 0 and less than {}", left, right);
    case ConditionKind::fits:
      return fmt::format("{} is at most 2^63 - 1", left);
  }
  return {};
}

void DimTable::declare_free(Name name, int source) { add({name, DimKind::free, 0, Poly(), source}); }
void DimTable::declare_default(Name name, int64_t value, int source) { add({name, DimKind::defaulted, value, Poly(), source}); }
void DimTable::set_default(Name name, int64_t value) {
  const auto dim = std::ranges::find(dims_, name, &Dim::name);
  EINC_CHECK(dim != dims_.end() && dim->kind == DimKind::free, "a default for {}, which is no free dim", name.str());
  dim->kind = DimKind::defaulted;
  dim->default_value = value;
}
void DimTable::declare_derived(Name name, const Poly& definition, int source) {
  for (const Name n : definition.free_names()) {
    const Dim* base = find(n);
    EINC_CHECK(base && base->kind != DimKind::derived, "dim {} is defined by {}, which is no base dim", name.str(), n.str());
  }
  add({name, DimKind::derived, 0, definition.kept(), source});
}

void DimTable::add(Dim dim) {
  const bool is_new = index_.emplace(dim.name, dims_.size()).second;
  EINC_CHECK(is_new, "dim {} declared twice", dim.name.str());
  dims_.push_back(std::move(dim));
}

void DimTable::require(Condition condition) {
  if (std::find(conditions_.begin(), conditions_.end(), condition) == conditions_.end()) conditions_.push_back(std::move(condition));
}

const Dim* DimTable::find(Name name) const {
  const auto it = index_.find(name);
  return it == index_.end() ? nullptr : &dims_[it->second];
}

Poly DimTable::size(Name name) const {
  const Dim* dim = find(name);
  EINC_CHECK(dim, "dim {} is not declared", name.str());
  return dim->kind == DimKind::derived ? dim->definition : Poly::dim(name);
}

std::vector<Definition> DimTable::definitions() const {
  std::vector<Definition> result;
  for (const Dim& d : dims_)
    if (d.kind == DimKind::derived) result.push_back({d.name, d.definition});
  return result;
}

DimTable DimTable::without_conditions() const {
  DimTable table;
  table.dims_ = dims_, table.index_ = index_;
  return table;
}

BindResult DimTable::bind(const Bindings& given) const {
  BindResult result;
  bind_given(given, result);
  for (const Dim& d : dims_)
    if (d.kind == DimKind::derived) bind_derived(d, result);
  // Equal layers ask the same of the same sizes, each at its own place.
  std::unordered_map<Poly, std::optional<Rational>> known;
  const auto value_of = [&](const Poly& size) -> const std::optional<Rational>& {
    const auto [at, is_new] = known.try_emplace(size);
    if (is_new) at->second = size.evaluate(result.values);
    return at->second;
  };
  for (const Condition& c : conditions_)
    if (holds(c, value_of(c.left), value_of(c.right)) == false && !follows_from_dim(c, result)) {
      result.problems.push_back(
          {BindProblemKind::condition, Name(), c.source, c.text + (c.text.empty() ? "" : ": ") + broken(c, result.values)});
    }
  return result;
}

// An inexact division inside a derived dim's definition: the dim is no integer, which was reported.
bool DimTable::follows_from_dim(const Condition& c, const BindResult& result) const {
  return c.kind == ConditionKind::divides && std::any_of(result.problems.begin(), result.problems.end(), [&](const BindProblem& problem) {
           return problem.kind == BindProblemKind::not_integer && (find(problem.dim)->definition - divide(c.left, c.right)).is_integral();
         });
}

void DimTable::bind_given(const Bindings& given, BindResult& result) const {
  std::vector<Name> unknown;
  for (const auto& [name, value] : given)
    if (!find(name)) unknown.push_back(name);
  std::sort(unknown.begin(), unknown.end(), [](Name a, Name b) { return a.str() < b.str(); });
  for (const Name n : unknown) result.problems.push_back({BindProblemKind::unknown_dim, n, -1, fmt::format("there is no dim {}", n.str())});
  for (const Dim& d : dims_) {
    const auto it = given.find(d.name);
    if (it == given.end()) {
      if (d.kind == DimKind::free) result.unset.push_back(d.name);
      if (d.kind == DimKind::defaulted) result.values[d.name] = d.default_value;
      continue;
    }
    if (d.kind == DimKind::derived) {
      const std::string bases = names_text(d.definition.free_names());
      result.problems.push_back({BindProblemKind::derived_set, d.name, d.source,
                                 fmt::format("dim {} is derived ({}){}", d.name.str(), fraction_text(d.definition),
                                             bases.empty() ? "" : ": set " + bases + " instead")});
      continue;
    }
    result.values[d.name] = it->second;
  }
  for (const Dim& d : dims_)
    if (const auto it = result.values.find(d.name); it != result.values.end() && it->second < 1)
      result.problems.push_back(
          {BindProblemKind::below_one, d.name, d.source, fmt::format("dim {} is {}; a dim is at least 1", d.name.str(), it->second)});
}

void DimTable::bind_derived(const Dim& d, BindResult& result) const {
  const auto names = d.definition.free_names();
  for (const Name n : names)  // a base dim that is wrong was reported
    if (const auto it = result.values.find(n); it == result.values.end() || it->second < 1) return;
  const auto report = [&](BindProblemKind kind, std::string what) {
    const std::string where = values_text({&d.definition}, result.values);
    result.problems.push_back(
        {kind, d.name, d.source,
         fmt::format("dim {} = {} {}{}", d.name.str(), fraction_text(d.definition), what, where.empty() ? "" : " with " + where)});
  };
  const auto value = d.definition.evaluate(result.values);
  if (!value) return report(BindProblemKind::not_integer, "divides by 0");
  if (!value->is_integer()) return report(BindProblemKind::not_integer, fmt::format("is {}, not an integer,", value->str()));
  if (*value < Rational(1)) return report(BindProblemKind::below_one, fmt::format("is {}, not at least 1,", value->str()));
  if (*value > Rational(INT64_MAX)) return report(BindProblemKind::too_large, fmt::format("is {}, above 2^63 - 1,", value->str()));
  result.values[d.name] = *value->as_integer();
}

Bindings DimTable::values_or(const Bindings& given, int64_t fallback) const {
  Bindings values;
  for (const Dim& d : dims_) {
    if (d.kind == DimKind::derived) continue;
    const auto it = given.find(d.name);
    values[d.name] = it != given.end() ? it->second : d.kind == DimKind::free ? fallback : d.default_value;
  }
  for (const Dim& d : dims_) {
    if (d.kind != DimKind::derived) continue;
    const auto value = d.definition.evaluate(values);
    const int64_t whole = value ? value->floor().as_integer().value_or(INT64_MAX) : 1;
    values[d.name] = std::max<int64_t>(whole, 1);
  }
  return values;
}

}  // namespace einc
