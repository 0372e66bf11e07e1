// SPDX-License-Identifier: Apache-2.0
// The alphabet by which GPT-2's vocabularies write bytes: printable Latin-1 characters stand for themselves, the other bytes in their
// order for the characters from U+0100 on.
#pragma once
#include <array>
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>

namespace einc {

// The bytes that a name in that alphabet stands for; nullopt: it has another character.
std::optional<std::string> bytes_of_name(std::string_view name);
// Appends each byte's character.
void append_name_of_bytes(std::string& name, std::string_view bytes);

// The byte that a piece such as <0x0A> stands for, as vocabularies of characters write bytes; nullopt: it is not of this form.
std::optional<char> byte_of_piece(std::string_view piece);

}  // namespace einc
