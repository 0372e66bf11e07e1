// SPDX-License-Identifier: Apache-2.0
// What names mean inside one fn call or at the top level. A loop's iteration is a scope inside that of its body's
// surroundings: names bound outside are carried, new ones end with the iteration. A binding without a value stands for one
// that an error left undefined: using it gives no further message.
//
// Axis hygiene: inside a call the caller's axes that the signature does not name carry the caller's name plus kForeignMark,
// one mark per level. So they line up with each other by name and meet no name written in the fn. On return a mark is taken off.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/elaborate/context.h"
#include "compiler/elaborate/unit.h"

namespace einc {

enum class BindingKind : uint8_t { value, input, param, state, argument, loop_index };

struct Binding {
  std::optional<Value> value;
  BindingKind kind = BindingKind::value;
  Span span;
};

// An axis name that a pattern or a type has introduced; with a second size it still names axes but no size.
struct LocalAxis {
  Poly size;
  Span span;
  std::optional<Poly> other;  // another size it was introduced with
  Span other_span;
};

// A name that branches of an `if` bound and that is not visible behind it.
struct HiddenName {
  Span span;
  std::string reason;
};

struct Scope {
  Scope* parent = nullptr;  // in the same call; null for its outermost scope
  bool is_branch = false;   // of an `if`: what it rebinds is rebound behind it, if at all (conditions.cpp)
  std::unordered_map<Name, Binding> bindings;
  std::unordered_map<Name, LocalAxis> axes;
  std::unordered_map<Name, HiddenName> hidden;

  const Binding* find(Name name) const;
  Binding* find(Name name);
  const LocalAxis* find_axis(Name name) const;
  // Rebinds a name of this or an enclosing scope, in a branch of an `if` not beyond that branch, or binds it here.
  void assign(Name name, Binding binding);
  void introduce(Name name, const Poly& size, Span where);
};

// An axis of the signature of the fn being called: what the caller calls it, and its size.
struct SignatureAxis {
  Name name;
  Axis caller;
  Span argument;           // the argument that bound it
  bool parameter = false;  // an untyped parameter with a size for its value, which may be used as an axis
};

// One call of a fn, or the top level.
struct Frame {
  Frame() = default;
  Frame(const Frame&) = delete;
  Frame* caller = nullptr;
  const SourceUnit* unit = nullptr;
  const ast::Fn* fn = nullptr;  // null at the top level
  Span call;
  std::string path;  // instance path: prefix of the params' names
  Scope outermost;
  Scope* scope = &outermost;
  std::vector<int64_t> loop_indices;  // of the loops around the current statement in this body
  std::vector<SignatureAxis> signature;
  std::vector<Span> arguments;                // of each parameter in order, where one was given
  std::optional<std::vector<Axis>> ellipsis;  // the axes that the first `...` of the signature stands for, marked
  bool returned = false;
  std::optional<Value> result;  // when returned; nullopt: wrong already

  const SignatureAxis* find_axis(Name name) const;
  // Whether the name is such a parameter, and still has its value.
  bool is_axis_parameter(Name name) const;
};

inline constexpr char kForeignMark = '\'';
Name mark_foreign(Name axis);  // nameless and composed axes have no mark
bool is_foreign(Name axis);
Name unmark(Name axis);  // one mark less
Name without_marks(Name axis);

// "a.b", or "b" when the prefix is empty.
std::string join_path(const std::string& prefix, const std::string& name);

}  // namespace einc
