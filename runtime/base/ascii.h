// SPDX-License-Identifier: Apache-2.0
// Classes of ASCII characters, whatever the locale; bytes of other characters belong to none.
#pragma once
#include <algorithm>
#include <string_view>

namespace einc {

constexpr bool is_digit(char c) { return c >= '0' && c <= '9'; }
constexpr bool is_digits(std::string_view text) { return !text.empty() && std::ranges::all_of(text, is_digit); }
constexpr bool is_letter(char c) { return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'); }
// Of a name in a program: its first character, and each one.
constexpr bool is_name_start(char c) { return is_letter(c) || c == '_'; }
constexpr bool is_name_char(char c) { return is_name_start(c) || is_digit(c); }

}  // namespace einc
