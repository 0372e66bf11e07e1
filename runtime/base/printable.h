// SPDX-License-Identifier: Apache-2.0
// Text from outside, made safe to show: a hostile file or tensor name cannot reach a terminal as control characters.
#pragma once
#include <cstddef>
#include <string>
#include <string_view>

namespace einc {

constexpr size_t kMaxShownIdentifier = 64;

// Escapes control and invisible characters, cuts words longer than kMaxShownIdentifier and texts longer than 1024 bytes.
std::string printable(std::string_view text);
// The same in quotes, of at most kMaxShownIdentifier bytes: a name that a file gives.
std::string quoted_name(std::string_view name);

}  // namespace einc
