// SPDX-License-Identifier: Apache-2.0
// Expressions. Operators are reduced on a stack of pending ones (so a chain of any length needs no recursion), and a node
// above kMaxNesting levels is refused, so that whoever walks the tree may recurse.
#include <algorithm>
#include <charconv>
#include <limits>
#include <numbers>

#include "dsl/foreign_functions.h"
#include "dsl/parser_impl.h"

namespace einc {
namespace {

constexpr int kNotLevel = 3, kComparisonLevel = 4, kNegateLevel = 7, kPowerLevel = 8;

struct Operator {
  ast::BinaryOp op;
  int level;  // 0: no binary operator
};

Operator binary_operator(TokenKind kind) {
  switch (kind) {
    case TokenKind::kw_or:
      return {ast::BinaryOp::logical_or, 1};
    case TokenKind::kw_and:
      return {ast::BinaryOp::logical_and, 2};
    case TokenKind::less:
      return {ast::BinaryOp::lt, kComparisonLevel};
    case TokenKind::less_equal:
      return {ast::BinaryOp::le, kComparisonLevel};
    case TokenKind::greater:
      return {ast::BinaryOp::gt, kComparisonLevel};
    case TokenKind::greater_equal:
      return {ast::BinaryOp::ge, kComparisonLevel};
    case TokenKind::equal:
      return {ast::BinaryOp::eq, kComparisonLevel};
    case TokenKind::not_equal:
      return {ast::BinaryOp::ne, kComparisonLevel};
    case TokenKind::plus:
      return {ast::BinaryOp::add, 5};
    case TokenKind::minus:
      return {ast::BinaryOp::sub, 5};
    case TokenKind::star:
      return {ast::BinaryOp::mul, 6};
    case TokenKind::slash:
      return {ast::BinaryOp::div, 6};
    case TokenKind::double_slash:
      return {ast::BinaryOp::floor_div, 6};
    case TokenKind::percent:
      return {ast::BinaryOp::remainder, 6};
    case TokenKind::caret:
      return {ast::BinaryOp::pow, kPowerLevel};
    default:
      return {ast::BinaryOp::add, 0};
  }
}

}  // namespace

// An operator whose right operand is still being read.
struct Parser::Pending {
  ast::ExprPtr left;  // null for a prefix operator
  ast::BinaryOp binary = ast::BinaryOp::add;
  ast::UnaryOp unary = ast::UnaryOp::negate;
  Span op_span;
  int level = 0;
};

ast::ExprPtr Parser::make(Span span, ast::Expr::Node node, int height_below, Span blame) {
  auto e = std::make_unique<ast::Expr>();
  e->span = span;
  if (height_below >= ast::kMaxNesting) {
    if (!panic_) fail(Code::nested_too_deep, blame).hint("bind a part of it to a name");
    return e;  // Invalid
  }
  e->node = std::move(node);
  e->height = height_below + 1;
  return e;
}

bool Parser::prefix_operators(std::vector<Pending>& pending) {
  for (;; ++at_) {
    Pending p;
    p.op_span = here();
    if (at(TokenKind::kw_not)) {
      if (!pending.empty() && pending.back().level > kNotLevel) {
        fail_expected("a value", "put the `not` and what it applies to in parentheses");
        return false;
      }
      p.unary = ast::UnaryOp::logical_not;
      p.level = kNotLevel;
    } else if (at(TokenKind::minus)) {
      p.level = kNegateLevel;
    } else {
      return true;
    }
    pending.push_back(std::move(p));
  }
}

// Applies the pending operators that bind tighter than one of the given level (0: all of them).
ast::ExprPtr Parser::reduce(std::vector<Pending>& pending, ast::ExprPtr operand, int level, bool& was_comparison) {
  while (!pending.empty()) {
    Pending& p = pending.back();
    const bool right_associative = level == kPowerLevel;
    if (right_associative ? p.level <= level : p.level < level) break;
    was_comparison = p.level == kComparisonLevel;
    if (p.left) {
      const int below = std::max(p.left->height, operand->height);
      const Span span = join(p.left->span, operand->span);
      operand = make(span, ast::Binary{p.binary, p.op_span, std::move(p.left), std::move(operand)}, below, p.op_span);
    } else {
      const int below = operand->height;
      const Span span = join(p.op_span, operand->span);
      operand = make(span, ast::Unary{p.unary, p.op_span, std::move(operand)}, below, p.op_span);
    }
    pending.pop_back();
  }
  return operand;
}

ast::ExprPtr Parser::expression() {
  if (panic_) return invalid(here());
  std::vector<Pending> pending;
  for (;;) {
    if (!prefix_operators(pending)) return invalid(here());
    ast::ExprPtr operand = postfix();
    if (panic_) return invalid(operand->span);
    const Operator op = binary_operator(kind());
    bool was_comparison = false;
    operand = reduce(pending, std::move(operand), op.level, was_comparison);
    if (panic_ || op.level == 0) return operand;
    if (was_comparison && op.level == kComparisonLevel) {
      fail(Code::chained_comparison, here()).hint("compare twice: a < b and b < c");
      return invalid(operand->span);
    }
    Pending p;
    p.left = std::move(operand);
    p.binary = op.op;
    p.op_span = here();
    p.level = op.level;
    pending.push_back(std::move(p));
    ++at_;
  }
}

// `a, b`: a tuple without parentheses, where one may stand.
ast::ExprPtr Parser::bare_tuple() {
  ast::ExprPtr first = expression();
  if (panic_ || !at(TokenKind::comma)) return first;
  ast::Tuple tuple;
  int height = first->height;
  Span span = first->span;
  tuple.items.push_back(std::move(first));
  while (!panic_ && accept(TokenKind::comma)) {
    tuple.items.push_back(expression());
    height = std::max(height, tuple.items.back()->height);
    span = join(span, tuple.items.back()->span);
  }
  return make(span, std::move(tuple), height, span);
}

ast::ExprPtr Parser::postfix() {
  const uint32_t begin = token().begin;
  bool is_call = at(TokenKind::name) && next_kind() == TokenKind::left_paren;
  bool is_parenthesized = at(TokenKind::left_paren);
  ast::ExprPtr e = is_call ? call(begin) : primary();
  is_call = is_call && e->as<ast::Call>();
  while (!panic_) {
    if (at(TokenKind::left_bracket)) {
      ast::Index index;
      const Span blame = here();
      int height = e->height;
      index.base = std::move(e);
      const bool ok = index_items(index.items, height);
      e = ok ? make(from(begin), std::move(index), height, blame) : invalid(from(begin));
      is_call = is_parenthesized = false;
    } else if (is_parenthesized && at(TokenKind::colon) && type_follows()) {
      e = annotated(std::move(e), begin);
      is_parenthesized = false;
    } else if (at(TokenKind::kw_as)) {
      if (!is_call && !e->as<ast::Invalid>()) {
        fail(Code::misplaced_as, here(), e->as<ast::NameRef>() ? "a name" : "this expression")
            .hint("`as` follows a call directly: f(x) as name");
        break;
      }
      ++at_;
      ast::Identifier instance = identifier(NameUse::instance);
      if (auto* named = e->as<ast::Call>()) named->instance = instance;
      e->span = from(begin);
      is_call = false;
    } else if (at(TokenKind::dot)) {
      e = dotted(std::move(e), begin);
      is_call = is_parenthesized = false;
    } else if (at(TokenKind::left_paren)) {
      const auto* call = e->as<ast::Call>();
      const std::string foreign = call ? foreign_function_hint(call->callee.name.str()) : std::string();
      fail(Code::not_callable, here()).hint("{}", foreign.empty() ? "a product is written with `*`" : foreign);
    } else {
      break;
    }
  }
  return panic_ ? invalid(from(begin)) : std::move(e);
}

// `x.view(...)`, `x.T`, `torch.relu(x)`: nothing here has a dot.
ast::ExprPtr Parser::dotted(ast::ExprPtr base, uint32_t begin) {
  const auto* head = base->as<ast::NameRef>();
  const bool module = head && is_foreign_module(head->name.str());
  const uint32_t dot = token().begin;
  Token last = token();
  while (accept(TokenKind::dot)) {
    last = token();
    ++at_;  // the lexer saw a name
    if (!module) break;
  }
  const Span whole = from(module ? begin : dot);
  const std::string name(text(last));
  const bool called = at(TokenKind::left_paren);
  auto report = diagnostics_.report(Code::dotted_name, whole, text_.substr(whole.begin, whole.size()));
  if (module && head->name.str() == "self") {
    report.hint("{}", find_habit("self")->hint);
  } else if (module) {
    const std::string foreign = foreign_function_hint(name);
    const WordHabit* habit = find_habit(name);
    if (!foreign.empty())
      report.hint("write {}", foreign);
    else if (habit && habit->kind == HabitKind::value)
      report.hint("{}", habit->hint).replace(whole, habit->replacement);
    else
      report.hint("ops and layers have no prefix: write `{}`", name).replace(whole, name);
  } else if (const std::string foreign = foreign_method_hint(name); !foreign.empty()) {
    report.hint("a tensor has no methods and no attributes; instead: {}", foreign);
  } else {
    std::string_view object = text_.substr(begin, dot - begin);
    if (object.starts_with('(') && object.ends_with(')')) object = object.substr(1, object.size() - 2);
    const bool more = called && tokens_[at_ + 1].kind != TokenKind::right_paren;
    report.hint("a tensor has no methods: write {}({}{})", name, object, more ? ", ..." : "");
    if (called) {
      report.replace({file_, begin, begin}, name + "(").replace({file_, whole.begin, token().end}, more ? ", " : "");
    }
  }
  panic_ = true;
  return invalid(from(begin));
}

// Whether a type stands behind the colon here; in `x[n = (a):(b)]` a bound of the slice does.
bool Parser::type_follows() const {
  const size_t next = at_ + 1 < tokens_.size() ? at_ + 1 : at_;
  if (tokens_[next].kind == TokenKind::left_bracket) return true;
  return tokens_[next].kind == TokenKind::name && parse_dtype(text(tokens_[next])).has_value();
}

// `: type` behind a value.
ast::ExprPtr Parser::annotated(ast::ExprPtr value, uint32_t begin) {
  const Span blame = here();
  ++at_;
  std::optional<ast::Type> written = type();
  if (panic_) return invalid(from(begin));
  int height = value->height;
  for (const ast::Axis& axis : written->axes)
    if (axis.size) height = std::max(height, axis.size->height);
  return make(from(begin), ast::Annotated{std::move(value), std::move(*written)}, height, blame);
}

ast::ExprPtr Parser::primary() {
  const Token t = token();
  const Span span = span_of(t);
  switch (t.kind) {
    case TokenKind::name:
      if (text(t) == "lambda" && (next_kind() == TokenKind::name || next_kind() == TokenKind::colon)) {
        fail(Code::foreign_word, span, "lambda").hint("{}", find_habit("lambda")->hint);
        break;
      }
      ++at_;
      return make(span, ast::NameRef{Name(text(t))}, 0, span);
    case TokenKind::integer:
    case TokenKind::real:
    case TokenKind::kw_inf:
    case TokenKind::kw_nan:
    case TokenKind::kw_pi:
      return number();
    case TokenKind::kw_true:
    case TokenKind::kw_false:
      ++at_;
      return make(span, ast::Boolean{t.kind == TokenKind::kw_true}, 0, span);
    case TokenKind::string:
      return make(span, string_literal(), 0, span);
    case TokenKind::left_paren:
      return parenthesized();
    case TokenKind::plus:
      fail_expected("a value", "a number has no sign `+`");
      break;
    case TokenKind::tilde:
      fail(Code::expected, span, "a value", "`~`").hint("write `not`").replace(span, "not ");
      break;
    case TokenKind::left_brace:
      fail_expected("a value", "there are no dictionaries and sets: several values are a tuple, (a, b), sizes are dims");
      break;
    case TokenKind::kw_param:
    case TokenKind::kw_state:
    case TokenKind::kw_input:
      fail_expected("a value", "a declaration is a statement of its own: param w: [d] ~ zeros");
      break;
    case TokenKind::left_bracket:
      fail_at_list();
      break;
    case TokenKind::kw_not:
    case TokenKind::minus:
    default:
      fail_expected("a value");
      break;
  }
  return invalid(span);
}

ast::ExprPtr Parser::number() {
  const Token t = token();
  const Span span = span_of(t);
  ++at_;
  ast::Number n;
  n.kind = t.kind == TokenKind::integer ? ast::NumberKind::integer : ast::NumberKind::real;
  for (const char c : text(t))
    if (c != '_') n.text += c;
  if (t.kind == TokenKind::kw_inf) {
    n.value = std::numeric_limits<double>::infinity();
  } else if (t.kind == TokenKind::kw_nan) {
    n.value = std::numeric_limits<double>::quiet_NaN();
  } else if (t.kind == TokenKind::kw_pi) {
    n.value = std::numbers::pi;
  } else {
    const auto [stop, error] = std::from_chars(n.text.data(), n.text.data() + n.text.size(), n.value);
    const bool exact = n.kind == ast::NumberKind::real || ast::as_int64(n).has_value();
    if (error != std::errc() || stop != n.text.data() + n.text.size() || !exact) return invalid(span);  // the lexer has said why
  }
  return make(span, std::move(n), 0, span);
}

ast::String Parser::string_literal() {
  const Token t = token();
  ++at_;
  const bool closed = t.end - t.begin >= 2 && text_[t.end - 1] == text_[t.begin];
  ast::String s;
  s.contents = {file_, t.begin + 1, closed ? t.end - 1 : t.end};
  s.value = std::string(text_.substr(s.contents.begin, s.contents.size()));
  if (!closed) panic_ = true;  // reported by the lexer
  return s;
}

// `(e)` is e; `()`, `(e,)` and `(e, f)` are tuples.
ast::ExprPtr Parser::parenthesized() {
  const Token open = token();
  const Nest nest(*this);
  if (!nest.ok()) return invalid(span_of(open));
  ++at_;
  ast::Tuple tuple;
  int height = 0;
  bool comma = true;
  while (!panic_ && comma && !at(TokenKind::right_paren) && !at_line_end()) {
    tuple.items.push_back(expression());
    height = std::max(height, tuple.items.back()->height);
    comma = accept(TokenKind::comma);
  }
  if (!expect_close(TokenKind::right_paren, open)) return invalid(span_of(open));
  if (tuple.items.size() == 1 && !comma) return std::move(tuple.items[0]);
  return make(from(open.begin), std::move(tuple), height, span_of(open));
}

}  // namespace einc
