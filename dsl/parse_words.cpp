// SPDX-License-Identifier: Apache-2.0
// Statements that begin with a word which is a name elsewhere: `scan`, `collect`, `if`, `else`, `mesh`, `shard` and a fn's `gradient`
// block. A program may call a value `gradient` or `if`; the word means the statement only where that can stand and where no `=`, `:`, `(`
// or `<-` follows.
#include "dsl/parser_impl.h"

namespace einc {

// A statement, not an expression or a binding that begins with a name like the word.
bool Parser::begins_with_word(std::string_view word) const {
  if (!at_word(word)) return false;
  switch (next_kind()) {
    case TokenKind::assign:
    case TokenKind::colon:
    case TokenKind::arrow_left:
      return false;
    case TokenKind::left_paren:  // `if (training) {`, as in C; a call never has a block behind it
      return opens_block_on_this_line();
    default:
      return true;
  }
}

bool Parser::opens_block_on_this_line() const {
  for (size_t i = at_; tokens_[i].kind != TokenKind::newline && tokens_[i].kind != TokenKind::end_of_file; ++i)
    if (tokens_[i].kind == TokenKind::left_brace) return true;
  return false;
}

std::optional<ast::Stmt::Node> Parser::word_statement() {
  if (at(TokenKind::name))
    if (const WordHabit* habit = find_habit(text(token())); habit && at_foreign_statement(*habit)) return foreign_statement(*habit);
  if (begins_with_word("if")) return if_statement();
  if (begins_with_word("scan")) return scan_statement();
  if (begins_with_word("collect")) return collect_statement();
  if (begins_with_word("mesh") && next_kind() == TokenKind::name) return mesh_statement();
  if (begins_with_word("mesh") && next_kind() == TokenKind::integer) {
    ++at_;
    fail_expected("the name of an axis of the mesh", "a mesh names its axes: mesh data = 4, model = 2");
    return std::nullopt;
  }
  if (begins_with_word("shard") && (next_kind() == TokenKind::name || next_kind() == TokenKind::string)) return shard_statement();
  const bool opens = next_kind() == TokenKind::left_brace || (next_kind() == TokenKind::name && opens_block_on_this_line());
  if (!at_word("else") || !opens) return simple_statement();
  fail(Code::else_without_if, here()).hint("`else` goes on the line of the `}` before it: } else {");
  if (recover_at_brace()) block();
  return std::nullopt;
}

// if condition { ... } [else if condition { ... }] [else { ... }]
std::optional<ast::Stmt::Node> Parser::if_statement() {
  ast::If out;
  const Nest nest(*this);  // `else if` is an if inside the one before
  if (!nest.ok()) return std::nullopt;
  ++at_;
  out.condition = expression();
  const bool header_ok = !panic_;
  if (!header_ok && !recover_at_brace()) return std::nullopt;
  ++if_depth_;
  out.then = block();
  const bool elif = !panic_ && (at_word("elif") || at_word("elseif") || at_word("elsif"));
  if (elif) diagnostics_.report(Code::foreign_word, here(), text(token())).hint("write `else if`").replace(here(), "else if");
  if (elif || (!panic_ && at_word("else"))) {
    const uint32_t begin = token().begin;
    if (!elif) ++at_;
    if (elif || at_word("if")) {
      const uint32_t inner = token().begin;
      std::optional<ast::Stmt::Node> next = if_statement();
      ast::Block otherwise;
      otherwise.span = from(begin);
      if (next) otherwise.statements.push_back({from(inner), std::move(*next)});
      out.otherwise = std::move(otherwise);
    } else {
      out.otherwise = block();
    }
  }
  --if_depth_;
  if (!header_ok || panic_) return std::nullopt;
  return out;
}

// scan NAME in (AXIS | reversed(AXIS)) [, save every INT] { ... }; AXIS: a name, or name = size
bool Parser::scan_header(ast::Scan& out) {
  out.variable = identifier(NameUse::loop_variable);
  if (!expect(TokenKind::kw_in, "`in`", "scan t in time { ... }")) return false;
  const bool reversed = at(TokenKind::name) && text(token()) == "reversed" && next_kind() == TokenKind::left_paren;
  Token open{};
  if (reversed) {
    out.order = ast::ScanOrder::reversed;
    ++at_;
    open = token();
    ++at_;
  }
  if (at(TokenKind::name)) {
    out.axis = identifier(NameUse::axis);
  } else {
    fail_expected("the name of an axis or dim", "a new axis is written `steps = 10`");
    return false;
  }
  bool names_dim = false;
  if (accept(TokenKind::assign)) out.size = dim_expression(names_dim);
  if (reversed && !panic_ && !expect_close(TokenKind::right_paren, open)) return false;
  if (panic_ || !accept(TokenKind::comma)) return !panic_;
  for (const std::string_view word : {"save", "every"}) {
    if (!at(TokenKind::name) || text(token()) != word) {
      fail_expected("`save every` and a number", "scan t in time, save every 16 { ... }");
      return false;
    }
    ++at_;
  }
  const ast::ExprPtr every = expression();
  const auto* number = every ? every->as<ast::Number>() : nullptr;
  if (panic_) return false;
  if (number != nullptr && number->kind == ast::NumberKind::integer) out.save_every = ast::as_int64(*number);
  if (out.save_every && *out.save_every >= 1) return true;
  diagnostics_.report(Code::expected, every->span, "a positive integer", "another expression")
      .hint("scan t in time, save every 16 { ... }");
  panic_ = true;
  return false;
}

std::optional<ast::Stmt::Node> Parser::scan_statement() {
  ast::Scan out;
  ++at_;
  const bool header_ok = scan_header(out);
  if (!header_ok && !recover_at_brace()) return std::nullopt;
  const int outer = scan_block_;
  ++loop_depth_, ++scan_depth_;
  scan_block_ = block_depth_ + 1;
  out.body = block();
  scan_block_ = outer;
  --loop_depth_, --scan_depth_;
  if (!header_ok || panic_) return std::nullopt;
  return out;
}

std::optional<ast::Stmt::Node> Parser::collect_statement() {
  ast::Collect out;
  const Span place = here();
  ++at_;
  out.name = identifier(NameUse::value);
  if (!panic_) declare(out.name);
  if (!expect(TokenKind::assign, "`=` and a value", "collect ys = y")) return std::nullopt;
  out.value = expression();
  if (block_depth_ == scan_block_) return out;
  diagnostics_.report(Code::collect_outside_scan, place).hint("move it right inside the braces of a scan");
  return std::nullopt;
}

// mesh data = 4, model = 2
std::optional<ast::Stmt::Node> Parser::mesh_statement() {
  ast::Mesh out;
  const Span place = here();
  ++at_;
  do {
    if (!dim_item(out.items)) return std::nullopt;
  } while (accept(TokenKind::comma));
  if (block_depth_ == 0) return out;
  diagnostics_.report(Code::misplaced_statement, place, "`mesh`");
  return std::nullopt;
}

// shard batch over data;  shard "h.*.w_up"[hidden], heads over model;  shard layers over stage (microbatches = 8)
std::optional<ast::Stmt::Node> Parser::shard_statement() {
  ast::Shard out;
  const Span place = here();
  ++at_;
  do {
    if (!shard_target(out)) return std::nullopt;
  } while (accept(TokenKind::comma));
  if (!expect(TokenKind::kw_over, "`over` and an axis of the mesh", "shard batch over data")) return std::nullopt;
  do {
    out.over.push_back(identifier(NameUse::axis));
  } while (!panic_ && accept(TokenKind::comma));
  if (panic_ || (at(TokenKind::left_paren) && !microbatches(out))) return std::nullopt;
  if (block_depth_ == 0) return out;
  diagnostics_.report(Code::misplaced_statement, place, "`shard`");
  return std::nullopt;
}

bool Parser::microbatches(ast::Shard& out) {
  const Token open = token();
  ++at_;
  const ast::Identifier word = identifier(NameUse::dim);
  if (panic_) return false;
  if (word.name.str() != "microbatches") {
    fail(Code::expected, word.span, "`microbatches`", "`" + word.name.str() + "`").hint("shard layers over stage (microbatches = 8)");
    return false;
  }
  if (!expect(TokenKind::assign, "`=` and a number", "shard layers over stage (microbatches = 8)")) return false;
  bool names_dim = false;
  out.microbatches = dim_expression(names_dim);
  return !panic_ && expect_close(TokenKind::right_paren, open);
}

bool Parser::shard_target(ast::Shard& out) {
  ast::ShardTarget target;
  const uint32_t begin = token().begin;
  if (at(TokenKind::string)) {
    target.glob = string_literal();
    const Token open = token();
    if (panic_ || !expect(TokenKind::left_bracket, "`[` and an axis", "shard \"h.*.w_up\"[hidden] over model")) return false;
    target.axis = identifier(NameUse::axis);
    if (panic_ || !expect_close(TokenKind::right_bracket, open)) return false;
  } else {
    target.axis = identifier(NameUse::axis);
  }
  target.span = from(begin);
  out.targets.push_back(std::move(target));
  return !panic_;
}

// gradient(dy, ...) { ... }
bool Parser::gradient_block(ast::Fn& fn) {
  ast::GradientBlock out;
  const uint32_t begin = token().begin;
  ++at_;
  const Token open = token();
  if (!expect(TokenKind::left_paren, "`(`", "gradient(dy) { ... }: a name for the gradient of each returned value")) return false;
  while (!panic_ && !at(TokenKind::right_paren) && !at_line_end()) {
    const ast::Identifier name = identifier(NameUse::parameter);
    for (const ast::Identifier& other : out.cotangents)
      if (!panic_ && other.name == name.name)
        fail(Code::duplicate_in_statement, name.span, name.name).label(other.span, "the first is here");
    if (!panic_ && out.cotangents.size() == kMaxParameters) fail(Code::too_many_keywords, name.span);
    out.cotangents.push_back(name);
    if (panic_ || !accept(TokenKind::comma)) break;
  }
  if (!expect_close(TokenKind::right_paren, open)) return false;
  ++gradient_depth_;
  out.body = block();
  --gradient_depth_;
  out.span = from(begin);
  fn.gradient = std::move(out);
  return !panic_;
}

// return dx, dw, p = dp: one value for each argument, then those of params by name.
std::optional<ast::Stmt::Node> Parser::gradient_return() {
  ast::Return out;
  ast::Tuple values;
  const uint32_t begin = token().begin;
  int height = 0;
  do {
    const uint32_t first = token().begin;
    ast::ExprPtr value = expression();
    if (panic_) break;
    const auto* name = value->as<ast::NameRef>();
    ast::Argument named;
    if (name && at(TokenKind::assign)) {
      ++at_;
      named.name = {name->name, value->span};
      named.value = expression();
      height = std::max(height, named.value->height);
      named.span = from(first);
      out.named.push_back(std::move(named));
    } else if (!out.named.empty()) {
      fail(Code::positional_after_keyword, value->span);
    } else {
      height = std::max(height, value->height);
      values.items.push_back(std::move(value));
    }
  } while (!panic_ && accept(TokenKind::comma));
  out.value = panic_ ? invalid(from(begin)) : make(from(begin), std::move(values), height, from(begin));
  return out;
}

}  // namespace einc
