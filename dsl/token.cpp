// SPDX-License-Identifier: Apache-2.0
// The words of the language, and what a kind of token means for where statements begin and end.
#include "dsl/token.h"

#include <array>

namespace einc {
namespace {

struct Word {
  std::string_view text;
  TokenKind kind;
};

constexpr std::array<Word, 24> kWords{{
    {"dim", TokenKind::kw_dim},
    {"import", TokenKind::kw_import},
    {"input", TokenKind::kw_input},
    {"param", TokenKind::kw_param},
    {"frozen", TokenKind::kw_frozen},
    {"state", TokenKind::kw_state},
    {"output", TokenKind::kw_output},
    {"fn", TokenKind::kw_fn},
    {"return", TokenKind::kw_return},
    {"for", TokenKind::kw_for},
    {"in", TokenKind::kw_in},
    {"precision", TokenKind::kw_precision},
    {"minimize", TokenKind::kw_minimize},
    {"over", TokenKind::kw_over},
    {"using", TokenKind::kw_using},
    {"as", TokenKind::kw_as},
    {"and", TokenKind::kw_and},
    {"or", TokenKind::kw_or},
    {"not", TokenKind::kw_not},
    {"true", TokenKind::kw_true},
    {"false", TokenKind::kw_false},
    {"inf", TokenKind::kw_inf},
    {"nan", TokenKind::kw_nan},
    {"pi", TokenKind::kw_pi},
}};

}  // namespace

TokenKind keyword_kind(std::string_view word) {
  for (const Word& w : kWords)
    if (w.text == word) return w.kind;
  return TokenKind::name;
}

std::vector<std::string_view> keywords() {
  std::vector<std::string_view> all;
  for (const Word& w : kWords) all.push_back(w.text);
  return all;
}

std::vector<std::string_view> statement_words() {
  return {"scan", "collect", "if", "else", "gradient", "save", "every", "reversed", "mesh", "shard"};
}

bool begins_statement(TokenKind kind) {
  switch (kind) {
    case TokenKind::kw_dim:
    case TokenKind::kw_import:
    case TokenKind::kw_input:
    case TokenKind::kw_param:
    case TokenKind::kw_frozen:
    case TokenKind::kw_state:
    case TokenKind::kw_output:
    case TokenKind::kw_fn:
    case TokenKind::kw_return:
    case TokenKind::kw_for:
    case TokenKind::kw_precision:
    case TokenKind::kw_minimize:
      return true;
    default:
      return false;
  }
}

bool continues_statement(TokenKind kind) {
  switch (kind) {
    case TokenKind::comma:
    case TokenKind::assign:
    case TokenKind::arrow_left:
    case TokenKind::tilde:
    case TokenKind::plus:
    case TokenKind::minus:
    case TokenKind::star:
    case TokenKind::slash:
    case TokenKind::double_slash:
    case TokenKind::percent:
    case TokenKind::caret:
    case TokenKind::less:
    case TokenKind::less_equal:
    case TokenKind::greater:
    case TokenKind::greater_equal:
    case TokenKind::equal:
    case TokenKind::not_equal:
    case TokenKind::kw_and:
    case TokenKind::kw_or:
    case TokenKind::kw_not:
    case TokenKind::kw_using:
      return true;
    default:
      return false;
  }
}

}  // namespace einc
