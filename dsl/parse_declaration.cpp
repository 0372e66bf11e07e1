// SPDX-License-Identifier: Apache-2.0
// Declarations (dim, import, input, param, state, output) and what they are made of: names, dim expressions, types, initialisers.
#include "dsl/parser_impl.h"

namespace einc {

ast::Identifier Parser::identifier(NameUse use) {
  if (panic_) return {};
  if (!at(TokenKind::name) && !is_keyword(kind())) {
    fail_expected("a name");
    return {};
  }
  if (is_keyword(kind()) || parse_dtype(text(token()))) {
    fail_reserved(use);
    return {};
  }
  return any_word(use);
}

ast::Identifier Parser::any_word(NameUse) {
  if (panic_) return {};
  if (!at(TokenKind::name) && !is_keyword(kind())) {
    fail_expected("a name");
    return {};
  }
  const ast::Identifier out{Name(text(token())), here()};
  ++at_;
  return out;
}

// ---- dim expressions: + - * / ( ) on integers and names

bool Parser::check_dim_expression(const ast::Expr& e, bool& names_dim) {
  std::string_view found;
  switch (e.kind()) {
    case ast::ExprKind::invalid:
      return false;
    case ast::ExprKind::name:
      names_dim = true;
      return true;
    case ast::ExprKind::number:
      if (e.as<ast::Number>()->kind == ast::NumberKind::integer) return true;
      found = "a number that is not whole";
      break;
    case ast::ExprKind::unary:
      if (e.as<ast::Unary>()->op == ast::UnaryOp::negate) return check_dim_expression(*e.as<ast::Unary>()->operand, names_dim);
      found = "`not`";
      break;
    case ast::ExprKind::binary: {
      const auto& b = *e.as<ast::Binary>();
      if (b.op <= ast::BinaryOp::remainder) return check_dim_expression(*b.left, names_dim) && check_dim_expression(*b.right, names_dim);
      found = b.op == ast::BinaryOp::pow ? "`^`" : "a comparison or logical operator";
      break;
    }
    case ast::ExprKind::boolean:
      found = "a truth value";
      break;
    case ast::ExprKind::string:
      found = "a string";
      break;
    case ast::ExprKind::tuple:
      found = "a tuple";
      break;
    case ast::ExprKind::call:
      found = "a call";
      break;
    case ast::ExprKind::index:
      found = "an index";
      break;
    case ast::ExprKind::annotated:
      found = "an annotation";
      break;
  }
  fail(Code::not_a_dim_expression, e.span, found).hint("a dim is made of whole numbers and dims by + - * / // % and parentheses");
  return false;
}

ast::ExprPtr Parser::dim_expression(bool& names_dim) {
  ast::ExprPtr e = expression();
  if (!panic_) check_dim_expression(*e, names_dim);
  return e;
}

// ---- types

std::optional<ast::Type> Parser::type() {
  if (panic_) return std::nullopt;
  ast::Type type;
  const uint32_t begin = token().begin;
  if (at(TokenKind::name)) {
    type.dtype = parse_dtype(text(token()));
    if (!type.dtype) {
      fail_at_foreign_dtype();
      return std::nullopt;
    }
    type.dtype_span = here();
    ++at_;
  }
  const Token open = token();
  const std::string_view hint = at(TokenKind::left_paren) ? "axes are written in brackets: f32[batch seq]" : "a scalar's type is []";
  if (!expect(TokenKind::left_bracket, "`[` and axes", hint)) return std::nullopt;
  while (!panic_ && !at(TokenKind::right_bracket)) {
    if (!type_axis(type)) break;
    accept(TokenKind::comma);
  }
  if (!expect_close(TokenKind::right_bracket, open)) return std::nullopt;
  type.span = from(begin);
  return type;
}

// `[2*n]`: the size is fine, but an axis has a name.
void Parser::refuse_bare_expression(size_t first) {
  const bool goes_on = at(TokenKind::star) || at(TokenKind::plus) || at(TokenKind::minus) || at(TokenKind::slash) ||
                       at(TokenKind::double_slash) || at(TokenKind::percent);
  if (!goes_on) return;
  const size_t sign = at_;
  at_ = first;
  bool names_dim = false;
  const ast::ExprPtr size = dim_expression(names_dim);
  if (panic_) return;
  at_ = sign;
  fail_expected("`,` or `]`",
                fmt::format("an axis with a size of its own needs a name: `q={}`", text_.substr(size->span.begin, size->span.size())));
}

bool Parser::type_axis(ast::Type& type) {
  ast::Axis axis;
  const uint32_t begin = token().begin;
  const size_t first = at_;
  bool names_dim = false;
  if (at(TokenKind::ellipsis)) {
    axis.kind = ast::AxisKind::ellipsis;
    for (const ast::Axis& other : type.axes)
      if (other.kind == ast::AxisKind::ellipsis && !panic_) fail(Code::two_ellipses_in_type, here()).label(other.span, "the first is here");
    ++at_;
  } else if (at(TokenKind::integer)) {
    axis.kind = ast::AxisKind::number;
    axis.size = number();
  } else if (at(TokenKind::name) || (is_keyword(kind()) && !begins_statement(kind()))) {
    axis.name = identifier(NameUse::axis);
    if (accept(TokenKind::assign)) {
      axis.kind = ast::AxisKind::sized;
      axis.size = dim_expression(names_dim);
    }
  } else {
    if (at(TokenKind::left_paren))
      fail_expected("an axis", "a type's axis is a name or a number: `1` for a unit axis, `q=h*d` for one of that size");
    return false;  // the closing bracket is missed by the caller
  }
  axis.span = from(begin);
  if (axis.kind != ast::AxisKind::ellipsis && axis.kind != ast::AxisKind::sized && !panic_) refuse_bare_expression(first);
  if (type.axes.size() == kMaxAxes && !panic_) fail(Code::rank_too_large, axis.span, kMaxAxes);
  type.axes.push_back(std::move(axis));
  return !panic_;
}

std::optional<ast::Initializer> Parser::initializer() {
  ast::Initializer init;
  const uint32_t begin = token().begin;
  if (at(TokenKind::integer) || at(TokenKind::real) || at(TokenKind::minus)) {
    fail_expected("an initialiser", "a fixed value is written constant(0.5)");
    return std::nullopt;
  }
  init.name = identifier(NameUse::value);
  int height = 0;
  if (!panic_ && at(TokenKind::left_paren)) arguments(init.arguments, height);
  init.span = from(begin);
  if (panic_) return std::nullopt;
  return init;
}

// ---- declarations

std::optional<ast::Stmt::Node> Parser::dim_statement() {
  ast::DimDecl out;
  ++at_;
  do {
    if (!dim_item(out.items)) return std::nullopt;
  } while (accept(TokenKind::comma));
  return out;
}

// name [= value]
bool Parser::dim_item(std::vector<ast::DimItem>& out) {
  const uint32_t begin = token().begin;
  ast::DimItem item;
  item.name = identifier(NameUse::dim);
  if (panic_) return false;
  declare(item.name);
  if (accept(TokenKind::assign)) {
    bool names_dim = false;
    item.value = dim_expression(names_dim);
    item.kind = names_dim ? ast::DimKind::derived : ast::DimKind::defaulted;
  } else if (at(TokenKind::colon)) {
    fail(Code::expected, here(), "`=` and a size", "`:`").hint("a dim has no type: dim {} = 8", item.name.name).replace(here(), " =");
  }
  item.span = from(begin);
  if (panic_) return false;
  out.push_back(std::move(item));
  return true;
}

std::optional<ast::Stmt::Node> Parser::import_statement() {
  ast::Import out;
  ++at_;
  if (at(TokenKind::string)) {
    const ast::String path = string_literal();
    out.path = path.value;
    out.path_span = path.contents;
  } else {
    const ast::Identifier name = identifier(NameUse::module);
    out.kind = ast::ImportKind::bundled;
    out.path = name.name.str();
    out.path_span = name.span;
    if (!panic_ && (at(TokenKind::dot) || at(TokenKind::kw_as)))
      fail(Code::import_not_found, here(), text_.substr(name.span.begin, token().end - name.span.begin),
           "a library is imported by its one name")
          .hint("`import nn` brings in the bundled layers, which are called without a prefix: linear(x, hidden)");
  }
  if (panic_) return std::nullopt;
  return out;
}

std::optional<ast::Stmt::Node> Parser::tensor_statement() {
  ast::TensorDecl out;
  const Token word = token();
  ++at_;
  out.role = word.kind == TokenKind::kw_input ? ast::Role::input : word.kind == TokenKind::kw_state ? ast::Role::state : ast::Role::param;
  if (word.kind == TokenKind::kw_frozen) {
    if (!expect(TokenKind::kw_param, "`param`", "frozen param w: [a b] ~ zeros")) return std::nullopt;
    out.role = ast::Role::frozen_param;
  }
  out.name = identifier(NameUse::tensor);
  if (panic_) return std::nullopt;
  declare(out.name);
  const bool learned = out.role == ast::Role::param || out.role == ast::Role::frozen_param;
  const std::string_view example = learned                        ? "such as param w: [d k] ~ normal(std = 0.02)"
                                   : out.role == ast::Role::state ? "such as state s: [d] ~ zeros"
                                                                  : "such as x: f32[batch seq]";
  if (!expect(TokenKind::colon, "`:` and a type", example)) return std::nullopt;
  std::optional<ast::Type> declared = type();
  if (panic_) return std::nullopt;
  out.type = std::move(*declared);
  const uint32_t begin = token().begin;
  if (accept(TokenKind::tilde)) {
    out.initializer = initializer();
    if (panic_) return std::nullopt;
  }
  if (out.role == ast::Role::input && out.initializer) {
    fail(Code::initializer_on_input, from(begin), out.name.name).hint("a learned tensor is a `param`");
  } else if (out.role != ast::Role::input && !out.initializer && at(TokenKind::assign)) {
    fail(Code::missing_initializer, here(), out.role == ast::Role::state ? "state" : "param", out.name.name)
        .hint("an initialiser follows `~`: ~ zeros")
        .replace(here(), "~");
  } else if (out.role != ast::Role::input && !out.initializer) {
    fail(Code::missing_initializer, out.name.span, out.role == ast::Role::state ? "state" : "param", out.name.name)
        .hint(out.role == ast::Role::state ? "such as ~ zeros" : "such as ~ normal(std = 0.02)");
  }
  if (panic_) return std::nullopt;
  return out;
}

std::optional<ast::Stmt::Node> Parser::output_statement() {
  ast::Output out;
  ++at_;
  out.name = identifier(NameUse::value);
  if (panic_) return std::nullopt;
  declare(out.name);
  if (accept(TokenKind::colon)) out.type = type();
  if (!panic_ && (out.type || at(TokenKind::assign)) && expect(TokenKind::assign, "`=` and a value")) out.value = expression();
  if (panic_) return std::nullopt;
  return out;
}

}  // namespace einc
