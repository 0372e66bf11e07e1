// SPDX-License-Identifier: Apache-2.0
// Words that the graph printer and reader share: names of small enums and the spelling of strings and sizes. Both sides
// must agree on them, and on nothing else.
#pragma once
#include <optional>
#include <string>
#include <string_view>

#include "compiler/ir/graph.h"

namespace einc {

std::string_view to_string(Policy policy);
std::string_view to_string(StateRole role);
std::string_view to_string(ConditionKind kind);
std::optional<Policy> parse_policy(std::string_view name);
std::optional<StateRole> parse_state_role(std::string_view name);
std::optional<ConditionKind> parse_condition_kind(std::string_view name);

// [A-Za-z_][A-Za-z0-9_]*
bool is_identifier(std::string_view text);
bool is_identifier_char(char c);
// A size that needs no parentheses: letters, digits and _ * ^ only.
bool is_bare_size(std::string_view text);
bool is_bare_size_char(char c);
// In double quotes; \" \\ and \xNN for every byte that is not printable ASCII.
std::string quoted(std::string_view text);

}  // namespace einc
