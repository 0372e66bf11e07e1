// SPDX-License-Identifier: Apache-2.0
// What must hold for any text whatever: the front end neither crashes nor hangs, its messages stay small, and the
// formatter keeps the meaning and is idempotent. Shared by the libFuzzer targets and the mutation test of the suite.
#pragma once
#include <string>

#include "dsl/format.h"
#include "dsl/parser.h"
#include "dsl/print_ast.h"
#include "dsl/render.h"
#include "dsl/token.h"
#include "runtime/base/check.h"

namespace einc::fuzz {

inline void check_lexer(std::string text) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("fuzz.ein", std::move(text), diagnostics);
  if (!file) return;
  const std::vector<Token> tokens = lex(sources, *file, diagnostics);
  EINC_CHECK(!tokens.empty() && tokens.back().kind == TokenKind::end_of_file, "no end of file");
  uint32_t at = 0;
  for (const Token& token : tokens) {
    EINC_CHECK(token.begin >= at && token.end >= token.begin, "tokens overlap");
    at = token.end;
  }
}

inline void check_pattern_text(const std::string& text) {
  for (const PatternOp op : {PatternOp::einsum, PatternOp::rearrange, PatternOp::reduce, PatternOp::repeat, PatternOp::pack}) {
    SourceMap sources;
    Diagnostics diagnostics;
    const auto file = sources.add("pattern", text, diagnostics);
    if (!file) return;
    const Span span{*file, 0, static_cast<uint32_t>(sources.file(*file).text().size())};
    const auto pattern = parse_pattern(op, sources.text(span), span, diagnostics);
    EINC_CHECK(pattern.has_value() != diagnostics.has_errors(), "a pattern is given back exactly when there is no error");
    if (!pattern) continue;
    const std::string printed = print_pattern(*pattern);
    const auto again_file = sources.add("again", printed, diagnostics);
    const Span again{*again_file, 0, static_cast<uint32_t>(printed.size())};
    const auto second = parse_pattern(op, printed, again, diagnostics);
    EINC_CHECK(second && print_pattern(*second) == printed, "a printed pattern reads back");
  }
}

inline void check_parser(std::string text) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("fuzz.ein", std::move(text), diagnostics);
  std::string tree;
  if (file) tree = print_ast(parse(sources, *file, diagnostics));
  EINC_CHECK(render_text(sources, diagnostics).size() <= kMaxRenderedBytes, "too much text");
  render_json(sources, diagnostics);
  if (diagnostics.has_errors()) return;
  EINC_CHECK(tree.find("<invalid>") == std::string::npos, "an invalid tree without an error");
  const auto once = format(sources, *file, diagnostics);
  EINC_CHECK(once.has_value(), "what parses is formatted");
  const auto again = sources.add("formatted.ein", *once, diagnostics);
  EINC_CHECK(again && print_ast(parse(sources, *again, diagnostics)) == tree && !diagnostics.has_errors(),
             "formatting changed the meaning");
  EINC_CHECK(format(sources, *again, diagnostics) == once, "formatting is not idempotent");
}

}  // namespace einc::fuzz
