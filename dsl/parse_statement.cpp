// SPDX-License-Identifier: Apache-2.0
// Statements and blocks, and the checks on what may stand where.
#include <array>

#include "dsl/near_name.h"
#include "dsl/parser_impl.h"

namespace einc {
namespace {

bool ends_with_return(const ast::Stmt& statement) {
  if (statement.as<ast::Return>()) return true;
  const auto* precision = statement.as<ast::Precision>();
  if (!precision || !precision->body || precision->body->statements.empty()) return false;
  return ends_with_return(precision->body->statements.back());
}

std::optional<std::string> near_statement(std::string_view word) {
  return near_name(word, {"dim", "import", "input", "param", "frozen", "state", "output", "fn", "return", "for", "precision", "minimize",
                          "if", "scan", "collect", "else", "mesh", "shard"});
}

}  // namespace

// ---- lists of statements

// Statements up to the stop token (`}` or the end of the file), which is left.
void Parser::statements(std::vector<ast::Stmt>& out, TokenKind stop) {
  for (;;) {
    while (accept(TokenKind::newline)) {
    }
    if (at(stop) || at(TokenKind::end_of_file)) break;
    if (at(TokenKind::right_brace)) {  // only at the top level
      diagnostics_.report(Code::stray_bracket, here(), "}");
      ++at_;
      continue;
    }
    statement(out);
  }
  check_after_return(out);
}

void Parser::statement(std::vector<ast::Stmt>& out) {
  const Token first = token();
  const size_t mark = declared_.size();
  std::optional<ast::Stmt::Node> node = keyword_statement();
  const Span span = from(first.begin);
  if (!panic_ && !at_statement_end()) fail_after_statement(first);
  if (node) {
    out.push_back({span, std::move(*node)});
  } else {
    broken_.insert(broken_.end(), declared_.begin() + static_cast<std::ptrdiff_t>(mark), declared_.end());
  }
  declared_.resize(mark);
  if (panic_) synchronize();
}

// Something stands behind a complete statement.
[[gnu::noinline]] void Parser::fail_after_statement(Token first) {
  static constexpr std::string_view kEnd = "the end of the statement";
  if (at(TokenKind::right_paren) || at(TokenKind::right_bracket)) {
    fail(Code::stray_bracket, here(), text(token()));
  } else if (at(TokenKind::comma) && first.kind == TokenKind::kw_output && next_kind() == TokenKind::name) {
    fail(Code::expected, here(), kEnd, "`,`").hint("each output is a statement of its own: output a; output b").replace(here(), "; output");
  } else if (at(TokenKind::comma)) {
    fail_expected(kEnd, "a tuple is written in parentheses: (a, b)");
  } else if (parse_dtype(text(token())) && tokens_[at_ - 1].kind == TokenKind::right_bracket) {
    fail_expected(kEnd, "a dtype comes before the axes: f32[batch seq]");
  } else if (at(TokenKind::arrow_left)) {
    fail_expected(kEnd, "`<-` updates a state; a comparison with a negative number is written `< -`");
  } else if (at(TokenKind::colon) || at(TokenKind::assign)) {
    fail_expected(kEnd, "`==` compares; a statement has one `=`");
  } else if (at_word("if")) {
    fail_expected(kEnd, kChoiceByValue);
  } else if (at_word("is")) {
    fail_expected(kEnd, "`==` compares, and there is no None");
  } else if (text_.substr(first.begin, token().begin - first.begin).find("//") != std::string_view::npos) {
    fail_expected(kEnd, "comments begin with `#`");
  } else if (const auto near = near_statement(text(first)); near && first.kind == TokenKind::name) {
    fail(Code::foreign_word, span_of(first), text(first)).did_you_mean(span_of(first), *near);
  } else {
    fail_expected(kEnd, "statements are separated by a newline or `;`");
  }
}

ast::Block Parser::block() {
  ast::Block out;
  if (panic_) return out;
  const Token open = token();
  const Nest nest(*this);
  if (nest.ok() && at(TokenKind::colon)) {
    fail_at_colon();
    return out;
  }
  if (!nest.ok() || !expect(TokenKind::left_brace, "`{`", "a block opens on the line of its header")) return out;
  ++block_depth_;
  statements(out.statements, TokenKind::right_brace);
  --block_depth_;
  if (!accept(TokenKind::right_brace) && !unclosed_block_) {  // the innermost one speaks for those around it
    unclosed_block_ = true;
    fail(Code::unclosed_bracket, span_of(open), "{").label(here(), "the file ends here");
  }
  out.span = from(open.begin);
  return out;
}

void Parser::check_after_return(const std::vector<ast::Stmt>& list) {
  for (size_t i = 0; i + 1 < list.size(); ++i)
    if (ends_with_return(list[i])) {
      diagnostics_.report(Code::statement_after_return, list[i + 1].span).label(list[i].span, "the fn ends here");
      return;
    }
}

// ---- dispatch

std::optional<ast::Stmt::Node> Parser::keyword_statement() {
  const Token first = token();
  if (is_keyword(first.kind) && next_kind() == TokenKind::assign) {
    fail_reserved(NameUse::value);
    return std::nullopt;
  }
  const Span place = here();
  std::optional<ast::Stmt::Node> node;
  switch (first.kind) {
    case TokenKind::kw_dim:
      node = dim_statement();
      break;
    case TokenKind::kw_import:
      node = import_statement();
      break;
    case TokenKind::kw_input:
    case TokenKind::kw_param:
    case TokenKind::kw_frozen:
    case TokenKind::kw_state:
      node = tensor_statement();
      break;
    case TokenKind::kw_output:
      node = output_statement();
      break;
    case TokenKind::kw_fn:
      node = fn_statement();
      break;
    case TokenKind::kw_for:
      node = for_statement();
      break;
    case TokenKind::kw_precision:
      node = precision_statement();
      break;
    case TokenKind::kw_minimize:
      node = minimize_statement();
      break;
    case TokenKind::kw_return:
      node = return_statement();
      break;
    default:
      node = word_statement();
      break;
  }
  if (node && !placed_well(first.kind, place)) return std::nullopt;
  return node;
}

// What changes a state or belongs to the file stands outside of scans, whose iterations are compiled once.
bool Parser::may_stand_in_scan(Span place, std::string_view what) {
  if (scan_depth_ == 0) return true;
  auto report = diagnostics_.report(Code::misplaced_in_scan, place, what);
  if (what == "an update of a state") report.hint("carry the value, and update the state behind the scan");
  return false;
}

// Whether a statement of this kind may stand in the blocks around it.
bool Parser::placed_well(TokenKind first, Span place) {
  const bool in_file = block_depth_ == 0, in_fn = fn_depth_ > 0, in_loop = loop_depth_ > 0;
  switch (first) {
    case TokenKind::kw_dim:
    case TokenKind::kw_import:
    case TokenKind::kw_fn:
    case TokenKind::kw_minimize:
    case TokenKind::kw_input:
      if (in_file) return true;
      break;
    case TokenKind::kw_output:
      if (scan_depth_ > 0) return may_stand_in_scan(place, "an output");
      if (!in_fn && !in_loop && if_depth_ == 0) return true;
      break;
    case TokenKind::kw_state:
      if (!may_stand_in_scan(place, "a declaration of a state")) return false;
      [[fallthrough]];
    case TokenKind::kw_param:
    case TokenKind::kw_frozen:
      if (gradient_depth_ == 0) return true;
      diagnostics_.report(Code::declared_in_gradient, place).hint("declare it in the fn's body, which this block sees");
      return false;
    case TokenKind::kw_return:
      if (in_fn && !in_loop && if_depth_ == 0) return true;
      if (in_fn && !in_loop) {
        diagnostics_.report(Code::return_in_if, place).hint("bind the value to a name in every branch and return it behind them");
      } else if (in_fn) {
        diagnostics_.report(Code::return_in_loop, place)
            .hint("a loop is unrolled whole: bind the value to a name and return it behind the loop");
      } else {
        diagnostics_.report(Code::return_outside_fn, place).hint("a program's results are declared by `output`");
      }
      return false;
    default:
      return true;
  }
  diagnostics_.report(Code::misplaced_statement, place, std::string("`") + std::string(text_.substr(place.begin, place.size())) + "`");
  return false;
}

// ---- fns and blocks

bool Parser::fn_params(std::vector<ast::FnParam>& out) {
  const Token open = token();
  if (!expect(TokenKind::left_paren, "`(`")) return false;
  while (!panic_ && !at(TokenKind::right_paren) && !at_line_end()) {
    const uint32_t begin = token().begin;
    ast::FnParam param;
    param.name = identifier(NameUse::parameter);
    for (const ast::FnParam& other : out)
      if (!panic_ && other.name.name == param.name.name)
        fail(Code::duplicate_in_statement, param.name.span, param.name.name).label(other.name.span, "the first is here");
    if (!panic_ && out.size() == kMaxParameters) fail(Code::too_many_keywords, param.name.span);
    if (!panic_ && accept(TokenKind::colon)) param.type = type();
    if (!panic_ && accept(TokenKind::assign)) param.default_value = expression();
    param.span = from(begin);
    out.push_back(std::move(param));
    if (panic_ || !accept(TokenKind::comma)) break;
  }
  return expect_close(TokenKind::right_paren, open);
}

std::optional<ast::Stmt::Node> Parser::fn_statement() {
  ast::Fn out;
  ++at_;
  out.name = identifier(NameUse::fn);
  if (!panic_) declare(out.name);
  const bool header_ok = !panic_ && fn_params(out.params);
  if (!header_ok && !recover_at_brace()) return std::nullopt;
  ++fn_depth_;
  out.body = block();
  if (!panic_ && at_word("gradient") && !gradient_block(out)) panic_ = true;
  --fn_depth_;
  if (!header_ok || panic_) return std::nullopt;
  return out;
}

// After a wrong header: moves to the block on the same line, so that its statements are still read.
bool Parser::recover_at_brace() {
  size_t i = at_;
  while (tokens_[i].kind != TokenKind::left_brace) {
    if (tokens_[i].kind == TokenKind::newline || tokens_[i].kind == TokenKind::end_of_file || tokens_[i].kind == TokenKind::right_brace)
      return false;
    ++i;
  }
  at_ = i;
  panic_ = false;
  return true;
}

std::optional<ast::Stmt::Node> Parser::for_statement() {
  ast::For out;
  ++at_;
  out.variable = identifier(NameUse::loop_variable);
  if (expect(TokenKind::kw_in, "`in`", "for i in layers { ... }")) out.count = expression();
  if (!panic_ && !fail_at_range() && at(TokenKind::left_brace)) count_of_range(out.count);
  const bool header_ok = !panic_;
  if (!header_ok && !recover_at_brace()) return std::nullopt;
  ++loop_depth_;
  out.body = block();
  --loop_depth_;
  if (!header_ok || panic_) return std::nullopt;
  return out;
}

std::optional<ast::Stmt::Node> Parser::precision_statement() {
  static constexpr std::array<std::string_view, 6> kPolicies{"f64", "f32", "tf32", "bf16", "f16", "fp8"};
  ast::Precision out;
  ++at_;
  out.policy_span = here();
  size_t policy = 0;
  while (policy < kPolicies.size() && kPolicies[policy] != text(token())) ++policy;
  if (policy == kPolicies.size()) {
    if (!at(TokenKind::name)) {
      fail_expected("a precision policy", "f32, tf32, bf16, f16 or fp8");
    } else {
      auto report = fail(Code::unknown_precision, here(), text(token()));
      const WordHabit* habit = find_habit(text(token()));
      const auto near = near_name(text(token()), {kPolicies.begin(), kPolicies.end()});
      if (habit && !habit->replacement.empty())
        report.did_you_mean(here(), habit->replacement);
      else if (near)
        report.did_you_mean(here(), *near);
      else
        report.hint("the policies are f32, tf32, bf16, f16 and fp8");
    }
    if (!recover_at_brace()) return std::nullopt;
    out.body = block();
    return std::nullopt;
  }
  ++at_;
  out.policy = static_cast<ast::Policy>(policy);
  if (at(TokenKind::left_brace) || block_depth_ > 0) out.body = block();
  if (panic_) return std::nullopt;
  return out;
}

// ---- minimize, return

std::optional<ast::Stmt::Node> Parser::minimize_statement() {
  ast::Minimize out;
  ++at_;
  out.loss = expression();
  do {
    if (panic_ || !param_group(out)) return std::nullopt;
    accept(TokenKind::comma);
  } while (at(TokenKind::kw_over));
  return out;
}

// [over "glob"] using optimizer[(arguments)]
bool Parser::param_group(ast::Minimize& out) {
  ast::ParamGroup group;
  const uint32_t begin = token().begin;
  if (accept(TokenKind::kw_over)) {
    if (!at(TokenKind::string)) {
      fail_expected("a pattern of param paths", "such as over \"h.*.attn.*\"");
      return false;
    }
    group.glob_span = here();
    group.glob = string_literal();
  }
  if (!expect(TokenKind::kw_using, "`using` and an optimizer", "minimize loss using adamw(lr = 1e-3)")) return false;
  group.optimizer = identifier(NameUse::value);
  int height = 0;
  if (!panic_ && at(TokenKind::left_paren)) arguments(group.arguments, height);
  group.span = from(begin);
  out.groups.push_back(std::move(group));
  return !panic_;
}

std::optional<ast::Stmt::Node> Parser::return_statement() {
  ++at_;
  if (gradient_depth_ > 0) return gradient_return();
  const uint32_t begin = token().begin;
  ast::ExprPtr value = bare_tuple();
  if (!panic_ && at(TokenKind::colon)) {
    if (value->as<ast::Tuple>()) {
      fail(Code::misplaced_annotation, here()).hint("annotate each value by itself: return (a): [n], b");
    } else {
      value = annotated(std::move(value), begin);
    }
  }
  return ast::Return{std::move(value), {}};  // Invalid after a mistake: the fn still returns
}

// ---- assignments, updates, calls

std::optional<ast::Stmt::Node> Parser::simple_statement() {
  ast::ExprPtr first = expression();
  if (panic_) return std::nullopt;
  switch (kind()) {
    case TokenKind::comma:
    case TokenKind::colon:
    case TokenKind::assign:
      return assignment(std::move(first));
    case TokenKind::arrow_left:
      return state_update(std::move(first));
    default:
      break;
  }
  if (!at_statement_end()) return std::nullopt;  // a misspelt word before a statement: one mistake
  if (!first->as<ast::Call>() && !first->as<ast::Invalid>()) {
    const auto* compared = first->as<ast::Binary>();
    const bool equality = compared && compared->op == ast::BinaryOp::eq;
    const auto* name = first->as<ast::NameRef>();
    const WordHabit* habit = name ? find_habit(name->name.str()) : nullptr;
    auto report = fail(Code::unused_value, first->span);
    if (habit && habit->kind == HabitKind::alone)
      report.hint("{}", habit->hint);
    else if (equality && compared->left->as<ast::NameRef>())
      report.hint("`==` compares; an assignment is written `=`").replace(compared->op_span, "=");
    else
      report.hint("bind it to a name, or declare it an `output`");
    return std::nullopt;
  }
  return ast::ExprStmt{std::move(first)};
}

bool Parser::to_target(const ast::Expr& e, ast::Target& out) {
  static constexpr std::string_view kFound[] = {"this",         "a number",      "a truth value", "",       "a string",
                                                "a tuple",      "an expression", "an expression", "a call", "a part of a tensor",
                                                "an expression"};
  const auto* name = e.as<ast::NameRef>();
  if (!name) {
    auto report = fail(Code::bad_assignment_target, e.span, kFound[static_cast<size_t>(e.kind())]);
    if (e.as<ast::Index>()) report.hint("a state is updated by `<-`; other values do not change");
    return false;
  }
  if (parse_dtype(name->name.str())) {
    fail(Code::reserved_name, e.span, name->name, "a dtype", "a value").hint("call it `my_{}`", name->name);
    return false;
  }
  out.name = {name->name, e.span};
  declare(out.name);
  return true;
}

std::optional<ast::Stmt::Node> Parser::assignment(ast::ExprPtr first) {
  ast::Assign out;
  if (!to_target(*first, out.targets.emplace_back())) return std::nullopt;
  while (!panic_ && accept(TokenKind::comma)) {
    const ast::ExprPtr next = expression();
    if (panic_ || !to_target(*next, out.targets.emplace_back())) return std::nullopt;
  }
  if (panic_) return std::nullopt;
  if (at(TokenKind::colon)) {
    if (out.targets.size() > 1) {
      fail(Code::misplaced_annotation, here()).hint("annotate the name in a statement of its own: y: [a b] = y");
      return std::nullopt;
    }
    ++at_;
    out.targets[0].type = type();
  }
  if (!expect(TokenKind::assign, "`=` and a value")) return std::nullopt;
  out.value = out.targets.size() > 1 ? bare_tuple() : expression();
  return out;  // after a mistake the names are bound to Invalid
}

std::optional<ast::Stmt::Node> Parser::state_update(ast::ExprPtr target) {
  ast::StateUpdate out;
  if (!may_stand_in_scan(here(), "an update of a state")) {
    panic_ = true;
    return std::nullopt;
  }
  ++at_;
  const ast::Expr* named = target.get();
  if (auto* index = target->as<ast::Index>()) {
    named = index->base.get();
    out.indices = std::move(index->items);
  }
  const auto* name = named->as<ast::NameRef>();
  if (!name) {
    fail(Code::bad_assignment_target, target->span, "this expression").hint("`<-` updates a state: s <- e, or s[axis = place] <- e");
    return std::nullopt;
  }
  out.name = {name->name, named->span};
  out.value = expression();
  if (panic_) return std::nullopt;
  return out;
}

}  // namespace einc
