// SPDX-License-Identifier: Apache-2.0
// Damaged programs: pieces of the examples deleted, repeated, swapped and replaced by signs, from a fixed seed. Whatever
// comes out, the properties of tests/fuzz hold.
#include <doctest/doctest.h>

#include <fstream>
#include <random>
#include <sstream>

#include "tests/fuzz/properties.h"

using namespace einc;

namespace {

const char* const kPieces[] = {"(",         ")",
                               "[",         "]",
                               "{",         "}",
                               ",",         ":",
                               "=",         "<-",
                               "~",         "...",
                               "+",         "-",
                               "*",         "/",
                               "^",         "<",
                               "==",        "\n",
                               ";",         "#",
                               "\"",        "->",
                               "not ",      "and ",
                               " as x",     "for i in 2 {",
                               "return ",   "param w: [a] ~ zeros\n",
                               "fn f(x) {", "over \"a\" ",
                               "1",         "1e5",
                               "0x1",       "in ",
                               "inf",       "f32[",
                               "\xC3\xA9",  " ",
                               "a = ",      "x"};

std::string read_example(const std::string& name) {
  std::ifstream in(std::string(EINC_SOURCE_DIR) + "/" + name);
  std::ostringstream out;
  out << in.rdbuf();
  return out.str();
}

std::string damage(std::string text, std::mt19937& random) {
  const auto pick = [&](size_t n) { return n == 0 ? 0 : random() % n; };
  for (size_t edits = 1 + pick(4); edits > 0; --edits) {
    const size_t at = pick(text.size() + 1), length = std::min(pick(12), text.size() - at);
    const std::string piece = kPieces[pick(std::size(kPieces))];
    switch (pick(4)) {
      case 0:
        text.erase(at, length);
        break;
      case 1:
        text.insert(at, piece);
        break;
      case 2:
        text.replace(at, length, piece);
        break;
      default:
        text.insert(pick(text.size() + 1), text.substr(at, length * 4));
        break;
    }
  }
  return text;
}

}  // namespace

TEST_CASE("damaged programs") {
  std::mt19937 random(20240607);
  for (const char* name : {"examples/gpt2.ein", "examples/cnn.ein", "dsl/stdlib/optim.ein"}) {
    const std::string text = read_example(name);
    REQUIRE(!text.empty());
    for (int i = 0; i < 300; ++i) {
      const std::string damaged = damage(text, random);
      CAPTURE(damaged);
      CHECK_NOTHROW(fuzz::check_lexer(damaged));
      CHECK_NOTHROW(fuzz::check_parser(damaged));
    }
  }
}

TEST_CASE("programs of random pieces") {
  std::mt19937 random(7);
  for (int i = 0; i < 3000; ++i) {
    std::string text;
    for (size_t n = 1 + random() % 12; n > 0; --n) text += kPieces[random() % std::size(kPieces)];
    CAPTURE(text);
    CHECK_NOTHROW(fuzz::check_parser(text));
  }
}

TEST_CASE("patterns of random pieces") {
  const char* const pieces[] = {"a", "b", " ", " ",  "(",   ")", "...", "->",  ",",       "*",
                                "+", "1", "2", "()", "2*a", ".", "_",   "c d", "(a + b)", " -> "};
  std::mt19937 random(11);
  for (int i = 0; i < 5000; ++i) {
    std::string text;
    for (size_t n = 1 + random() % 10; n > 0; --n) text += pieces[random() % std::size(pieces)];
    CAPTURE(text);
    CHECK_NOTHROW(fuzz::check_pattern_text(text));
  }
}
