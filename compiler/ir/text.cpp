// SPDX-License-Identifier: Apache-2.0
#include "compiler/ir/text.h"

#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/ascii.h"

namespace einc {
namespace {

template <class E>
std::optional<E> parse_enum(std::string_view name, std::initializer_list<E> values) {
  for (const E value : values)
    if (to_string(value) == name) return value;
  return std::nullopt;
}

}  // namespace

std::string_view to_string(Policy policy) {
  switch (policy) {
    case Policy::inherit:
      return "inherit";
    case Policy::f32:
      return "f32";
    case Policy::tf32:
      return "tf32";
    case Policy::bf16:
      return "bf16";
    case Policy::f16:
      return "f16";
    case Policy::fp8:
      return "fp8";
  }
  return "";
}

std::string_view to_string(StateRole role) {
  switch (role) {
    case StateRole::user:
      return "user";
    case StateRole::moment:
      return "moment";
    case StateRole::scalar:
      return "scalar";
    case StateRole::sum:
      return "sum";
  }
  return "";
}

std::string_view to_string(ConditionKind kind) {
  switch (kind) {
    case ConditionKind::divides:
      return "divides";
    case ConditionKind::at_least:
      return "at_least";
    case ConditionKind::less:
      return "less";
    case ConditionKind::equal:
      return "equal";
    case ConditionKind::in_range:
      return "in_range";
    case ConditionKind::fits:
      return "fits";
  }
  return "";
}

std::optional<Policy> parse_policy(std::string_view name) {
  return parse_enum(name, {Policy::inherit, Policy::f32, Policy::tf32, Policy::bf16, Policy::f16, Policy::fp8});
}

std::optional<StateRole> parse_state_role(std::string_view name) {
  return parse_enum(name, {StateRole::user, StateRole::moment, StateRole::scalar, StateRole::sum});
}

std::optional<ConditionKind> parse_condition_kind(std::string_view name) {
  return parse_enum(name, {ConditionKind::divides, ConditionKind::at_least, ConditionKind::less, ConditionKind::equal,
                           ConditionKind::in_range, ConditionKind::fits});
}

bool is_identifier_char(char c) { return is_letter(c) || is_digit(c) || c == '_'; }

bool is_identifier(std::string_view text) {
  return !text.empty() && !is_digit(text[0]) && std::all_of(text.begin(), text.end(), is_identifier_char);
}

bool is_bare_size_char(char c) { return is_identifier_char(c) || c == '*' || c == '^'; }

bool is_bare_size(std::string_view text) { return !text.empty() && std::all_of(text.begin(), text.end(), is_bare_size_char); }

std::string quoted(std::string_view text) {
  std::string out = "\"";
  for (const char c : text) {
    if (c == '"' || c == '\\')
      (out += '\\') += c;
    else if (c >= ' ' && c <= '~')
      out += c;
    else
      out += fmt::format("\\x{:02x}", static_cast<unsigned char>(c));
  }
  return out + '"';
}

}  // namespace einc
