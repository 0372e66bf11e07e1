// SPDX-License-Identifier: Apache-2.0
// Entry, token handling and the reporting of mistakes; see parser_impl.h for the grammar.
#include "dsl/parser.h"

#include <fmt/format.h>

#include "dsl/parser_impl.h"

namespace einc {

Parser::Nest::Nest(Parser& parser) : parser_(parser) {
  if (++parser_.depth_ != ast::kMaxNesting + 1 || parser_.panic_) return;
  parser_.fail(Code::nested_too_deep, parser_.here()).hint("bind a part of it to a name");
  parser_.unclosed_block_ = true;  // the rest of a file so deep is skipped: blocks around it may seem to be open
}

bool Parser::accept(TokenKind k) {
  if (!at(k)) return false;
  ++at_;
  return true;
}

std::string Parser::describe(const Token& t) const {
  if (t.kind == TokenKind::end_of_file) return "the end of the file";
  if (t.kind == TokenKind::newline) return t.begin < t.end && text_[t.begin] == ';' ? "`;`" : "the end of the line";
  if (t.kind == TokenKind::string) return "a string";
  return fmt::format("`{}`", text(t));
}

bool Parser::at_statement_end() const {
  return at(TokenKind::newline) || at(TokenKind::end_of_file) || (block_depth_ > 0 && at(TokenKind::right_brace));
}

[[gnu::noinline]] void Parser::fail_expected(std::string_view what, std::string_view hint) {
  if (panic_) return;
  panic_ = true;
  if (at(TokenKind::invalid)) return;  // reported by the lexer
  auto report = diagnostics_.report(Code::expected, here(), what, describe(token()));
  if (hint.empty() && at_word("if")) hint = kChoiceByValue;
  if (!hint.empty()) report.hint(hint);
}

bool Parser::expect(TokenKind k, std::string_view what, std::string_view hint) {
  if (panic_) return false;
  if (accept(k)) return true;
  fail_expected(what, hint);
  return false;
}

[[gnu::noinline]] bool Parser::expect_close(TokenKind k, Token open) {
  if (panic_) return false;
  if (accept(k)) return true;
  // A word of the language within a line is no statement that begins here, but an axis of a forbidden name.
  const uint32_t before = tokens_[at_ - 1].end;
  const bool same_line = text_.substr(before, token().begin - before).find('\n') == std::string_view::npos;
  if (k == TokenKind::right_bracket && is_keyword(kind()) && same_line) {
    fail_reserved(NameUse::axis);
    return false;
  }
  const bool statement_ends =
      at(TokenKind::newline) || at(TokenKind::end_of_file) || at(TokenKind::right_brace) || begins_statement(kind());
  if (!statement_ends) {
    fail_expected(k == TokenKind::right_paren ? "`,` or `)`" : k == TokenKind::right_bracket ? "`,` or `]`" : "`}`");
    return false;
  }
  fail(Code::unclosed_bracket, span_of(open), text(open))
      .label(here(), at(TokenKind::end_of_file) ? "the file ends here" : "a closing bracket is missing before this");
  return false;
}

[[gnu::noinline]] void Parser::fail_reserved(NameUse use) {
  static constexpr std::string_view kUses[] = {"a dim",           "a tensor", "a fn",        "a parameter", "an axis",
                                               "a loop variable", "a module", "an instance", "a value"};
  const std::string_view word = text(token());
  const std::string_view what = is_keyword(kind()) ? "a word of the language" : "a dtype";
  fail(Code::reserved_name, here(), word, what, kUses[static_cast<size_t>(use)]).hint("call it `my_{}`", word);
}

// To the end of the statement, blocks that begin in it included.
void Parser::synchronize() {
  int open = 0;
  for (; !at(TokenKind::end_of_file); ++at_) {
    if (at(TokenKind::left_brace)) ++open;
    if (at(TokenKind::right_brace) && --open < 0) break;
    if (at(TokenKind::newline) && open == 0) break;
  }
  panic_ = false;
}

ast::Program Parser::program() {
  ast::Program program;
  program.file = file_;
  program.token_count = tokens_.size();
  const bool lexed = !diagnostics_.has_errors();
  statements(program.statements, TokenKind::end_of_file);
  program.broken = std::move(broken_);
  if (program.statements.empty() && lexed && !diagnostics_.has_errors())
    diagnostics_.report(Code::nothing_to_compile, Span{file_, 0, 0})
        .hint("a program declares inputs and an `output`, or a loss to `minimize`");
  return program;
}

ast::Program parse(const SourceMap& sources, FileId file, Diagnostics& diagnostics) { return Parser(sources, file, diagnostics).program(); }

std::optional<int64_t> ast::as_int64(const Number& number) {
  if (number.kind != NumberKind::integer || number.text.empty() || number.text.size() > 19) return std::nullopt;
  uint64_t value = 0;  // 19 digits fit
  for (const char c : number.text) value = value * 10 + static_cast<uint64_t>(c - '0');
  if (value > static_cast<uint64_t>(INT64_MAX)) return std::nullopt;
  return static_cast<int64_t>(value);
}

}  // namespace einc
