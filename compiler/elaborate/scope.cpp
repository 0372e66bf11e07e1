// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/scope.h"

namespace einc {

const Binding* Scope::find(Name name) const {
  for (const Scope* scope = this; scope; scope = scope->parent)
    if (const auto found = scope->bindings.find(name); found != scope->bindings.end()) return &found->second;
  return nullptr;
}

Binding* Scope::find(Name name) { return const_cast<Binding*>(std::as_const(*this).find(name)); }

const LocalAxis* Scope::find_axis(Name name) const {
  for (const Scope* scope = this; scope; scope = scope->parent)
    if (const auto found = scope->axes.find(name); found != scope->axes.end()) return &found->second;
  return nullptr;
}

void Scope::assign(Name name, Binding binding) {
  for (Scope* scope = this; scope; scope = scope->parent) {
    const auto found = scope->bindings.find(name);
    if (found != scope->bindings.end()) {
      found->second = std::move(binding);
      return;
    }
    if (!scope->is_branch || !scope->parent || !scope->parent->find(name)) continue;
    scope->bindings.emplace(name, std::move(binding));
    return;
  }
  bindings.emplace(name, std::move(binding));
}

void Scope::introduce(Name name, const Poly& size, Span where) {
  const auto [place, fresh] = axes.emplace(name, LocalAxis{size, where, std::nullopt, {}});
  LocalAxis& axis = place->second;
  if (fresh || axis.other || axis.size == size) return;
  axis.other = size;
  axis.other_span = where;
}

const SignatureAxis* Frame::find_axis(Name name) const {
  for (const SignatureAxis& axis : signature)
    if (axis.name == name) return &axis;
  return nullptr;
}

bool Frame::is_axis_parameter(Name name) const {
  const SignatureAxis* axis = find_axis(name);
  if (!axis || !axis->parameter) return false;
  const Binding* binding = scope->find(name);
  return !binding || binding->kind == BindingKind::argument;
}

Name mark_foreign(Name axis) {
  const std::string& text = axis.str();
  return text.empty() || text[0] == '(' ? axis : Name(text + kForeignMark);
}

bool is_foreign(Name axis) { return !axis.empty() && axis.str().back() == kForeignMark; }

Name unmark(Name axis) {
  const std::string& text = axis.str();
  return is_foreign(axis) ? Name(std::string_view(text).substr(0, text.size() - 1)) : axis;
}

Name without_marks(Name axis) {
  if (!is_foreign(axis)) return axis;
  const std::string& text = axis.str();
  return Name(std::string_view(text).substr(0, text.find(kForeignMark)));
}

std::string join_path(const std::string& prefix, const std::string& name) { return prefix.empty() ? name : prefix + "." + name; }

}  // namespace einc
