// SPDX-License-Identifier: Apache-2.0
// What the lexer makes of the text: a kind and the bytes it stands on, nothing more; text is read from the source again.
#pragma once
#include <cstdint>
#include <string_view>
#include <vector>

#include "dsl/diagnostic.h"
#include "dsl/source.h"

namespace einc {

enum class TokenKind : uint8_t {
  end_of_file,
  newline,  // a line's end that ends a statement, or `;`
  invalid,  // characters that are no token; already reported
  name,
  integer,
  real,
  string,
  left_paren,
  right_paren,
  left_bracket,
  right_bracket,
  left_brace,
  right_brace,
  comma,
  colon,
  assign,
  arrow_left,
  tilde,
  ellipsis,
  dot,  // before a name, behind a value: a habit of other languages, which the parser explains
  plus,
  minus,
  star,
  slash,
  double_slash,
  percent,
  caret,
  less,
  less_equal,
  greater,
  greater_equal,
  equal,
  not_equal,
  // words
  kw_dim,
  kw_import,
  kw_input,
  kw_param,
  kw_frozen,
  kw_state,
  kw_output,
  kw_fn,
  kw_return,
  kw_for,
  kw_in,
  kw_precision,
  kw_minimize,
  kw_over,
  kw_using,
  kw_as,
  kw_and,
  kw_or,
  kw_not,
  kw_true,
  kw_false,
  kw_inf,
  kw_nan,
  kw_pi,
};

struct Token {
  TokenKind kind = TokenKind::end_of_file;
  uint32_t begin = 0;
  uint32_t end = 0;
};

// The word's own kind, or TokenKind::name.
TokenKind keyword_kind(std::string_view word);
std::vector<std::string_view> keywords();
// Words with a meaning where their statement can stand, names elsewhere (parse_words.cpp).
std::vector<std::string_view> statement_words();
inline bool is_keyword(TokenKind kind) { return kind >= TokenKind::kw_dim; }

// A keyword that only ever begins a statement: seen at the start of a line, it shows that a bracket before it was never closed.
bool begins_statement(TokenKind kind);

// An operator, comma or `using`: a line that ends in it goes on.
bool continues_statement(TokenKind kind);

constexpr size_t kMaxTokens = size_t{1} << 20;  // of one file: bounds the memory of its tree

// Every token of the file; the last one is end_of_file, at the text's end. Newlines that continue a statement (inside an
// open ( or [, after an operator or a comma) are left out. Linear in the text; reports what is no token and goes on.
std::vector<Token> lex(const SourceMap& sources, FileId file, Diagnostics& diagnostics);

}  // namespace einc
