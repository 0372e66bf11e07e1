// SPDX-License-Identifier: Apache-2.0
// GPT-2's first step: a text falls into words, which byte pairs are never joined across. The words are the matches of
//   's|'t|'re|'ve|'m|'ll|'d| ?\p{L}+| ?\p{N}+| ?[^\s\p{L}\p{N}]+|\s+(?!\S)|\s+
// over code points (categories of utf8proc's Unicode version), and each byte that is not UTF-8 counts as a code point of its own that is
// neither letter, number nor space.
#pragma once
#include <cstddef>
#include <cstdint>
#include <string_view>

namespace einc {

// The length in bytes of the word at text[at], which is there.
size_t word_length(std::string_view text, size_t at);

// Unicode's property White_Space, which \s stands for.
bool is_white_space(int32_t character);

}  // namespace einc
