// SPDX-License-Identifier: Apache-2.0
// Statements and blocks in the form of other languages. Each is one error that says what to write; what belongs to it, an indented body
// too, is skipped, so that it brings no others.
#include "dsl/near_name.h"
#include "dsl/parser_impl.h"

namespace einc {

// Whether the word stands where it begins a statement of its own language, not a binding or a call of that name.
bool Parser::at_foreign_statement(const WordHabit& habit) const {
  const TokenKind next = next_kind();
  switch (habit.kind) {
    case HabitKind::alone:
    case HabitKind::value:
      return false;  // its own error says it
    case HabitKind::block:
      if (next == TokenKind::left_paren) return opens_block_on_this_line();
      if (next == TokenKind::colon) return at_ + 2 < tokens_.size() && tokens_[at_ + 2].kind == TokenKind::newline;
      return next == TokenKind::name || next == TokenKind::integer || next == TokenKind::left_brace || next == TokenKind::kw_not ||
             next == TokenKind::kw_true;
    case HabitKind::binding:
    case HabitKind::line:
      return next == TokenKind::name || next == TokenKind::integer || next == TokenKind::string;
  }
  return false;
}

std::optional<ast::Stmt::Node> Parser::foreign_statement(const WordHabit& habit) {
  const Token word = token();
  auto report = diagnostics_.report(Code::foreign_word, here(), habit.word);
  report.hint("{}", habit.hint);
  if (habit.kind == HabitKind::binding) {
    ++at_;
    report.replace({file_, word.begin, token().begin}, "");
    return simple_statement();
  }
  skip_indented(word.begin);
  return std::nullopt;
}

// `if x:` and an indented body.
void Parser::fail_at_colon() {
  const Span colon = here();
  auto report = diagnostics_.report(Code::expected, colon, "`{`", "`:`");
  report.hint("a block is written in braces, which open on the line of its header: for i in 3 { ... }");
  skip_indented(colon.begin);
  const uint32_t end = std::max(colon.end, tokens_[at_ - 1].end);
  const bool one_line = text_.substr(colon.begin, end - colon.begin).find('\n') == std::string_view::npos;
  const bool more = continues_below(colon.begin);
  if (!more)
    report.replace(colon, " {").replace({file_, end, end}, one_line ? " }" : "\n" + std::string(indentation(colon.begin), ' ') + "}");
  while (continues_below(colon.begin)) {
    while (accept(TokenKind::newline)) {
    }
    skip_indented(colon.begin);
  }
  panic_ = true;
}

// Whether an `else` or `elif` of the same depth comes next.
bool Parser::continues_below(uint32_t header) const {
  size_t next = at_;
  while (tokens_[next].kind == TokenKind::newline) ++next;
  const std::string_view word = text(tokens_[next]);
  return next > at_ && (word == "else" || word == "elif") && indentation(tokens_[next].begin) == indentation(header);
}

// To the end of the statement, and over the lines behind it that stand further in than the line of `header`.
void Parser::skip_indented(uint32_t header) {
  const size_t outer = indentation(header);
  for (;;) {
    synchronize();
    size_t next = at_;
    while (tokens_[next].kind == TokenKind::newline) ++next;
    const Token& token = tokens_[next];
    if (next == at_ || token.kind == TokenKind::end_of_file || token.kind == TokenKind::right_brace) return;
    if (indentation(token.begin) <= outer) return;
    at_ = next;
  }
}

// Blanks before the first sign of the line.
size_t Parser::indentation(uint32_t offset) const {
  const size_t before = offset == 0 ? std::string_view::npos : text_.rfind('\n', offset - 1);
  const size_t line = before == std::string_view::npos ? 0 : before + 1;
  return std::min(text_.find_first_not_of(" \t", line), text_.size()) - line;
}

// `for i in range(n) { ... }`: the loop goes on as `for i in n`.
void Parser::count_of_range(ast::ExprPtr& count) {
  auto* call = count->as<ast::Call>();
  if (!call || call->callee.name != Name("range")) return;
  auto report = diagnostics_.report(Code::not_a_dim_expression, count->span, "a call");
  const bool counts = call->arguments.size() == 1 && !call->arguments[0].name;
  if (!counts) {
    report.hint("a loop counts from 0: for i in layers { ... }");
    count = invalid(count->span);
    return;
  }
  const Span n = call->arguments[0].span;
  const std::string_view written = text_.substr(n.begin, n.size());
  report.hint("a loop counts from 0 by itself: for i in {} {{ ... }}", written).replace(count->span, written);
  ast::ExprPtr size = std::move(call->arguments[0].value);
  count = std::move(size);
}

// `for i in 0:n { ... }`. A block that a colon opens is another mistake.
bool Parser::fail_at_range() {
  if (!at(TokenKind::colon) || !opens_block_on_this_line()) return false;
  const size_t low = at_ - 1;
  const bool counts = tokens_[low - 1].kind == TokenKind::kw_in && text(tokens_[low]) == "0";
  auto report = fail(Code::expected, here(), "`{`", "`:`");
  report.hint("a loop counts from 0 by itself: for i in layers { ... }");
  if (counts) report.replace({file_, tokens_[low].begin, tokens_[at_ + 1].begin}, "");
  return true;
}

// `[a, b]` where a value is wanted: there are no lists, and what stands for one depends on what was to hold it.
void Parser::fail_at_list() {
  size_t end = at_ + 1;
  bool numbers = true;
  for (int depth = 1; depth > 0 && tokens_[end].kind != TokenKind::newline && tokens_[end].kind != TokenKind::end_of_file; ++end) {
    const TokenKind k = tokens_[end].kind;
    depth += (k == TokenKind::left_bracket) - (k == TokenKind::right_bracket);
    numbers = numbers && (k == TokenKind::integer || k == TokenKind::real || k == TokenKind::minus || k == TokenKind::comma || depth == 0);
  }
  const Token &before = tokens_[at_ - (at_ > 0)], &open = token(), &close = tokens_[end - 1];
  const bool empty = end == at_ + 2, closed = close.kind == TokenKind::right_bracket;
  auto report = fail(Code::expected, here(), "a value", "`[`");
  if (at_ >= 2 && before.kind == TokenKind::assign && text(tokens_[at_ - 2]) == "mesh") {
    report.hint("a mesh is a statement that names its axes: mesh data = 4, model = 2");
  } else if (empty) {
    report.hint("there are no lists: in a scan, `collect ys = e` stacks values; stack(a, b, axis) joins tensors");
  } else if (numbers && closed && before.kind == TokenKind::assign) {
    report.hint("several numbers are written in parentheses: (0.9, 0.95)").replace(span_of(open), "(").replace(span_of(close), ")");
  } else if (closed && before.kind == TokenKind::left_paren) {
    report.hint("several arguments need no brackets: concat(a, b, axis) joins along an axis, stack(a, b, axis) along a new one")
        .replace(span_of(open), "")
        .replace(span_of(close), "");
  } else if (closed && !numbers && before.kind == TokenKind::comma) {
    report.hint("several axes are arguments of their own: mean(x, rows, cols)").replace(span_of(open), "").replace(span_of(close), "");
  } else {
    report.hint("stack builds a tensor from others: stack(a, b, axis)");
  }
}

// `x: int[n]`, `p: float = 1.0`, `x: float32[n]`.
void Parser::fail_at_foreign_dtype() {
  const std::string_view word = text(token());
  const WordHabit* habit = find_habit(word);
  const std::string_view dtype = word == "float" ? "f32" : word == "int" ? "i32" : habit ? habit->replacement : std::string_view();
  if (!dtype.empty() && next_kind() == TokenKind::left_bracket) {
    fail(Code::expected, here(), "a type such as f32[batch seq]", describe(token())).hint("write `{}`", dtype).replace(here(), dtype);
  } else if (next_kind() == TokenKind::assign || next_kind() == TokenKind::right_paren || next_kind() == TokenKind::comma) {
    const bool known = !dtype.empty() || word == "bool" || word == "str";
    fail_expected("a type such as f32[batch seq]",
                  known ? "a number or flag as a parameter has no type: leave it out, as in fn f(x, p = 1.0); a tensor's is f32[batch seq]"
                        : "a type is a dtype (f64 f32 bf16 f16 f8e4m3 f8e5m2 i64 i32 u16 u8 bool) and axes in brackets");
  } else {
    fail_expected("a type such as f32[batch seq]",
                  "a type is a dtype (f64 f32 bf16 f16 f8e4m3 f8e5m2 i64 i32 u16 u8 bool) and axes in brackets");
  }
}

}  // namespace einc
