// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/split_words.h"

#include <algorithm>
#include <array>

#include "runtime/text/utf8.h"

namespace einc {

bool is_white_space(int32_t c) {
  return (c >= 0x09 && c <= 0x0D) || c == 0x20 || c == 0x85 || c == 0xA0 || c == 0x1680 || (c >= 0x2000 && c <= 0x200A) || c == 0x2028 ||
         c == 0x2029 || c == 0x202F || c == 0x205F || c == 0x3000;
}

namespace {

enum class CharClass : uint8_t { other, letter, number, space };

CharClass classify(int32_t c) {
  if (c < 0) return CharClass::other;
  if (is_white_space(c)) return CharClass::space;
  switch (utf8proc_category(c)) {
    case UTF8PROC_CATEGORY_LU:
    case UTF8PROC_CATEGORY_LL:
    case UTF8PROC_CATEGORY_LT:
    case UTF8PROC_CATEGORY_LM:
    case UTF8PROC_CATEGORY_LO:
      return CharClass::letter;
    case UTF8PROC_CATEGORY_ND:
    case UTF8PROC_CATEGORY_NL:
    case UTF8PROC_CATEGORY_NO:
      return CharClass::number;
    default:
      return CharClass::other;
  }
}

constexpr std::array<CharClass, 128> kAscii = [] {
  std::array<CharClass, 128> classes{};
  for (size_t c = 0; c < 128; ++c)
    classes[c] = (c >= 9 && c <= 13) || c == ' '                    ? CharClass::space
                 : (c >= 'A' && c <= 'Z') || (c >= 'a' && c <= 'z') ? CharClass::letter
                 : c >= '0' && c <= '9'                             ? CharClass::number
                                                                    : CharClass::other;
  return classes;
}();

struct Char {
  CharClass kind;
  uint32_t length;
};

Char char_at(std::string_view text, size_t at) {
  const auto byte = static_cast<unsigned char>(text[at]);
  if (byte < 0x80) return {kAscii[byte], 1};
  const CodePoint point = code_point_at(text, at);
  return {classify(point.value), point.length};
}

// The end of the run of that class which goes on at `at`.
size_t run_end(std::string_view text, size_t at, CharClass kind) {
  while (at < text.size()) {
    const Char next = char_at(text, at);
    if (next.kind != kind) break;
    at += next.length;
  }
  return at;
}

// Of 's 't 're 've 'm 'll 'd behind an apostrophe at text[at]; 0: none.
size_t contraction_length(std::string_view text, size_t at) {
  const std::string_view rest = text.substr(at + 1, 2);
  for (const std::string_view ending : {"s", "t", "re", "ve", "m", "ll", "d"})
    if (rest.starts_with(ending)) return 1 + ending.size();
  return 0;
}

}  // namespace

size_t word_length(std::string_view text, size_t at) {
  if (text[at] == '\'')
    if (const size_t length = contraction_length(text, at)) return length;
  const Char first = char_at(text, at);
  const size_t behind = at + first.length;
  if (first.kind != CharClass::space) return run_end(text, behind, first.kind) - at;
  if (text[at] == ' ' && behind < text.size()) {
    const Char second = char_at(text, behind);
    if (second.kind != CharClass::space) return run_end(text, behind + second.length, second.kind) - at;
  }
  // Spaces up to the last one, which goes with what follows or stands alone; all of them at the end of the text.
  size_t end = behind, last = at;
  while (end < text.size()) {
    const Char next = char_at(text, end);
    if (next.kind != CharClass::space) return (last > at ? last : end) - at;
    last = end;
    end += next.length;
  }
  return end - at;
}

}  // namespace einc
