// SPDX-License-Identifier: Apache-2.0
// Pattern strings: what is accepted and how it is read, and where a wrong one is marked.
#include "dsl/pattern.h"

#include <doctest/doctest.h>

#include "dsl/print_ast.h"

using namespace einc;

namespace {

// The pattern printed back, or "code begin-end" of the first mistake (places count within the pattern).
std::string read(PatternOp op, const std::string& text) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("pattern", text, diagnostics);
  REQUIRE(file);
  const auto pattern = parse_pattern(op, text, Span{*file, 0, static_cast<uint32_t>(text.size())}, diagnostics);
  CHECK(pattern.has_value() == !diagnostics.has_errors());
  if (pattern) return print_pattern(*pattern);
  const Diagnostic& d = diagnostics.list()[0];
  return std::string(info(d.code).code) + " " + std::to_string(d.span.begin) + "-" + std::to_string(d.span.end);
}

struct Row {
  PatternOp op;
  const char* text;
  const char* result;
};

constexpr PatternOp E = PatternOp::einsum, R = PatternOp::rearrange, D = PatternOp::reduce, P = PatternOp::repeat, K = PatternOp::pack;

}  // namespace

TEST_CASE("accepted patterns") {
  const Row rows[] = {
      {R, "a b c -> b c a", "a b c -> b c a"},
      {R, "( a   b  ) ->   b   a", "(a b) -> b a"},
      {R, "1 a () -> a", "1 a 1 -> a"},
      {R, "a (1 b) -> b a", "a (1 b) -> b a"},
      {R, "... -> (...)", "... -> (...)"},
      {R, "a b ... e -> b (a ...) e", "a b ... e -> b (a ...) e"},
      {R, "a (b (c d)) -> (a (b c)) d", "a (b (c d)) -> (a (b c)) d"},
      {R, "b (h + kh) -> b h kh", "b (h + kh) -> b h kh"},
      {D, "a b c d e ->", "a b c d e -> "},
      {D, "b c (h1 2) (w1 2) -> b c h1 w1", "b c (h1 2) (w1 2) -> b c h1 w1"},
      {D, "b (2*y + ky) c -> b y c", "b (2*y + ky) c -> b y c"},
      {D, "... a -> a", "... a -> a"},
      {P, "-> a b", " -> a b"},
      {P, "1 b c d -> (d copy 1) 3 b c", "1 b c d -> (d copy 1) 3 b c"},
      {E, ", a b, -> a b", ", a b,  -> a b"},
      {E, "i ... i -> i ...", "i ... i -> i ..."},
      {E, "..., ..., ... -> ...", "..., ..., ... -> ..."},
      {E, "ij,jk->ij jk", "ij, jk -> ij jk"},
      {E, "b (stride*y+3*ky) c, ky c -> b y", "b (stride*y + 3*ky) c, ky c -> b y"},
      {E, "(y*2 + k), k -> y", "(2*y + k), k -> y"},
      {E, "a 2 -> a 1", "a 2 -> a 1"},
      {K, "i j * k", "i j * k"},
      {K, "*", "*"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(read(row.op, row.text) == row.result);
  }
}

TEST_CASE("refused patterns, with the place of the mistake") {
  const Row rows[] = {
      {R, "a b", "E0302 0-3"},
      {R, "a -> b -> a", "E0302 7-9"},
      {R, "a - > a", "E0302 2-5"},
      {R, "a b) -> a b", "E0303 3-4"},
      {R, "(a b -> a b", "E0303 0-1"},
      {R, "... a ... -> a", "E0305 6-9"},
      {R, "a b -> ... a b", "E0305 7-10"},
      {R, "(... a) -> a ...", "E0305 1-4"},
      {R, "a . b -> a b", "E0304 2-3"},
      {R, "_a b -> b _a", "E0306 0-2"},
      {R, "a-b -> a", "E0301 1-2"},
      {R, "a b -> b", "E0308 0-1"},
      {R, "a -> a b", "E0308 7-8"},
      {R, "a b -> a b b", "E0307 11-12"},
      {R, "a b -> b 2 a", "E0309 9-10"},
      {R, "a 0 -> a", "E0309 2-3"},
      {R, "a, b -> b a", "E0312 1-2"},
      {P, "a b -> a", "E0308 2-3"},
      {D, "a -> a b", "E0308 7-8"},
      {E, "i j -> i j k", "E0308 11-12"},
      {E, "i 2j -> i", "E0306 2-4"},
      {E, "i j -> i i", "E0307 9-10"},
      {E, "->,->", "E0312 2-3"},
      {E, "(h - k), k -> h", "E0301 3-4"},
      {R, "h -> (h + k)", "E0310 5-12"},
      {E, "h -> (h + k)", "E0308 10-11"},
      {E, "...a, ...b -> ...a ...c", "E0305 19-23"},
      {E, "...a ...b -> ...a", "E0305 5-9"},
      {E, "...a -> ...a ...a", "E0305 13-17"},
      {R, "...a -> ...b", "E0305 8-12"},
      {E, "..._a -> ..._a", "E0306 3-5"},
      {K, "h w", "E0311 0-3"},
      {K, "h _w *", "E0306 2-4"},
      {K, "* *", "E0311 2-3"},
      {R, "a 99999999999999999999 -> a", "E0104 2-22"},
  };
  for (const Row& row : rows) {
    CAPTURE(row.text);
    CHECK(read(row.op, row.text) == row.result);
  }
}
