// SPDX-License-Identifier: Apache-2.0
// Calls and indices: what stands behind a name in parentheses or brackets.
#include <algorithm>

#include "dsl/parser_impl.h"

namespace einc {
namespace {

constexpr size_t kMaxKeywords = 256;  // of one call or index: they are compared with each other
// Their third argument is a new axis, `nodes = 8`, which looks like a keyword.
constexpr std::string_view kSegmentOps[] = {"segment_sum", "segment_mean", "segment_max", "segment_min"};

}  // namespace

ast::ExprPtr Parser::call(uint32_t begin) {
  ast::Call call;
  call.callee = {Name(text(token())), here()};
  ++at_;
  int height = 0;
  const bool segments = std::ranges::find(kSegmentOps, call.callee.name.str()) != std::end(kSegmentOps);
  if (!arguments(call.arguments, height, segments ? KeywordPlace::anywhere : KeywordPlace::last)) return invalid(from(begin));
  const Span span = from(begin);
  if (!attach_pattern(call, span)) return make(span, ast::Invalid{}, 0, span);
  const Span blame = call.callee.span;
  return make(span, std::move(call), height, blame);
}

// `(` arguments `)`, the token at hand being `(`.
bool Parser::arguments(std::vector<ast::Argument>& out, int& height, KeywordPlace keywords) {
  const Token open = token();
  const Nest nest(*this);
  if (!nest.ok()) return false;
  ++at_;
  while (!panic_ && !at(TokenKind::right_paren) && !at_line_end()) {
    if (!argument(out, height, keywords)) return false;
    if (!accept(TokenKind::comma)) break;
  }
  if (at(TokenKind::name) && is_bare_pattern()) panic_ = true;
  return expect_close(TokenKind::right_paren, open);
}

// `rearrange(x, b d -> d b)`: the lexer has said of the arrow that a pattern stands in quotes.
bool Parser::is_bare_pattern() const {
  size_t i = at_;
  while (tokens_[i].kind == TokenKind::name || tokens_[i].kind == TokenKind::comma) ++i;
  return tokens_[i].kind == TokenKind::invalid && text(tokens_[i]) == "->";
}

bool Parser::argument(std::vector<ast::Argument>& out, int& height, KeywordPlace keywords) {
  const uint32_t begin = token().begin;
  ast::Argument arg;
  if (next_kind() == TokenKind::assign && (at(TokenKind::name) || is_keyword(kind()))) {
    arg.name = any_word(NameUse::parameter);
    ++at_;
    size_t before = 1;
    for (auto other = out.rbegin(); other != out.rend() && other->name; ++other, ++before)
      if (other->name.name == arg.name.name) {
        fail(Code::duplicate_argument, arg.name.span, arg.name.name).label(other->name.span, "the first is here");
        return false;
      }
    if (before > kMaxKeywords) {
      fail(Code::too_many_keywords, arg.name.span);
      return false;
    }
  } else if (keywords == KeywordPlace::last && !out.empty() && out.back().name) {
    const ast::Argument& before = out.back();
    fail(Code::positional_after_keyword, here())
        .label(before.span, "the keyword argument")
        .hint("put it before the keyword arguments; or compare by `{} == ...`", before.name.name);
    return false;
  }
  arg.value = expression();
  height = std::max(height, arg.value->height);
  arg.span = from(begin);
  out.push_back(std::move(arg));
  return !panic_;
}

// Reads the pattern of a call that has one: its first string. False if there is none.
bool Parser::attach_pattern(ast::Call& call, Span span) {
  const std::optional<PatternOp> op = pattern_op(call.callee.name.str());
  if (!op) return true;
  for (ast::Argument& argument : call.arguments) {
    auto* string = argument.value->as<ast::String>();
    if (!string || argument.name) continue;
    std::optional<Pattern> pattern = parse_pattern(*op, string->value, string->contents, diagnostics_);
    if (pattern) {
      string->pattern = std::make_unique<Pattern>(std::move(*pattern));
    } else {
      argument.value->node = ast::Invalid{};
    }
    return true;
  }
  static constexpr std::string_view kExamples[] = {"i j, j k -> i k", "a b -> b a", "a b -> a", "a -> a b", "* channel", "* channel"};
  diagnostics_.report(Code::pattern_missing, span, to_string(*op), kExamples[static_cast<size_t>(*op)]);
  return false;
}

// ---- indexing

// `[` items `]`, the token at hand being `[`.
bool Parser::index_items(std::vector<ast::IndexItem>& out, int& height) {
  const Token open = token();
  const Nest nest(*this);
  if (!nest.ok()) return false;
  ++at_;
  do {
    if (at_line_end()) break;
    if (!index_item(out, height)) return false;
  } while (accept(TokenKind::comma) && !at(TokenKind::right_bracket));
  return expect_close(TokenKind::right_bracket, open);
}

bool Parser::index_item(std::vector<ast::IndexItem>& out, int& height) {
  const uint32_t begin = token().begin;
  ast::IndexItem item;
  if (next_kind() != TokenKind::assign) {
    const size_t close = at_ + 1;  // `blocks[i](x)`, a list of layers
    const bool called = at(TokenKind::name) && close + 1 < tokens_.size() && tokens_[close].kind == TokenKind::right_bracket &&
                        tokens_[close + 1].kind == TokenKind::left_paren;
    fail_expected("an axis and its index", called ? "a layer is a fn, and its params are new in each iteration: x = block(x) as blocks"
                                                  : "axes have names: x[axis = 3], x[axis = 0:8]");
    return false;
  }
  item.axis = any_word(NameUse::axis);
  if (out.size() == kMaxKeywords) {
    fail(Code::too_many_keywords, item.axis.span);
    return false;
  }
  if (!expect(TokenKind::assign, "`=`")) return false;
  for (const ast::IndexItem& other : out)
    if (other.axis.name == item.axis.name) {
      fail(Code::duplicate_argument, item.axis.span, item.axis.name).label(other.axis.span, "the first is here");
      return false;
    }
  const auto bound = [&]() -> ast::ExprPtr {
    if (at(TokenKind::colon) || at(TokenKind::comma) || at(TokenKind::right_bracket)) return nullptr;
    ast::ExprPtr e = expression();
    height = std::max(height, e->height);
    return e;
  };
  item.at = bound();
  if (panic_) return false;
  if (accept(TokenKind::colon)) {
    item.kind = ast::IndexKind::slice;
    item.low = std::move(item.at);
    item.high = bound();
    if (!panic_ && accept(TokenKind::colon)) item.step = bound();
  } else if (!item.at) {
    fail_expected("an index");
  }
  item.span = from(begin);
  out.push_back(std::move(item));
  return !panic_;
}

}  // namespace einc
