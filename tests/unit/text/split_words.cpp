// SPDX-License-Identifier: Apache-2.0
#include "runtime/text/split_words.h"

#include <doctest/doctest.h>

#include <string>
#include <vector>

using namespace einc;

namespace {

using Words = std::vector<std::string>;

Words split(const std::string& text) {
  Words words;
  for (size_t at = 0; at < text.size(); at += words.back().size()) words.push_back(text.substr(at, word_length(text, at)));
  return words;
}

}  // namespace

TEST_CASE("words, numbers and signs take the space before them") {
  CHECK(split("Hello world 42 times!?") == Words{"Hello", " world", " 42", " times", "!?"});
  CHECK(split("a1b") == Words{"a", "1", "b"});
  CHECK(split("x  = (y)") == Words{"x", " ", " =", " (", "y", ")"});
}

TEST_CASE("contractions are words, in small letters and behind an apostrophe alone") {
  CHECK(split("it's we're I'll don't") == Words{"it", "'s", " we", "'re", " I", "'ll", " don", "'t"});
  CHECK(split("'tis 'dx IT'S") == Words{"'t", "is", " '", "dx", " IT", "'", "S"});
  CHECK(split("!'s 'r") == Words{"!'", "s", " '", "r"});
}

TEST_CASE("of several spaces the last goes with the next word, if it is a plain one") {
  CHECK(split("a   b") == Words{"a", "  ", " b"});
  CHECK(split("a\n\nb") == Words{"a", "\n", "\n", "b"});
  CHECK(split("a \n b") == Words{"a", " \n", " b"});
  CHECK(split("a\xC2\xA0"
              "b") == Words{"a", "\xC2\xA0", "b"});
  CHECK(split("  ") == Words{"  "});
  CHECK(split("a \t\r\n") == Words{"a", " \t\r\n"});
  CHECK(split("\x1C"
              "a") == Words{"\x1C", "a"});  // a separator, but no white space
}

TEST_CASE("letters and numbers are those of all scripts") {
  CHECK(split("Grüße 日本語 ١٢٣ ½ Ⅷ") == Words{"Grüße", " 日本語", " ١٢٣", " ½", " Ⅷ"});
  CHECK(split("नमस्ते") == Words{"नमस", "्", "त", "े"});  // signs of vowels are marks
  CHECK(split("e\u0301x") == Words{"e", "\u0301", "x"});
  CHECK(split("😀😀 😀a") == Words{"😀😀", " 😀", "a"});
}

TEST_CASE("bytes that are not UTF-8 stand among the signs") {
  CHECK(split("a\xFF\xFE"
              "b") == Words{"a", "\xFF\xFE", "b"});
  CHECK(split(" \xC3"
              "a\xE2\x82") == Words{" \xC3", "a", "\xE2\x82"});
}
