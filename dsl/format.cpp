// SPDX-License-Identifier: Apache-2.0
// The formatter walks the tokens, not the tree: it changes only what stands between them, so meaning cannot change, and
// comments keep their place. A line's indentation is its blocks', or the column of the bracket it continues in.
#include "dsl/format.h"

#include <algorithm>

#include "dsl/format_lines.h"
#include "dsl/parser.h"
#include "dsl/token.h"

namespace einc {
namespace {

constexpr size_t kIndent = 2, kContinuationIndent = 4, kMaxCommentGap = 40;

enum class Bracket : uint8_t { block, paren, index, type };

struct Open {
  Bracket kind;
  size_t column;  // where a line that continues inside it begins
};

bool is_value_end(TokenKind kind) {
  switch (kind) {
    case TokenKind::name:
    case TokenKind::integer:
    case TokenKind::real:
    case TokenKind::string:
    case TokenKind::right_paren:
    case TokenKind::right_bracket:
    case TokenKind::kw_inf:
    case TokenKind::kw_nan:
    case TokenKind::kw_pi:
    case TokenKind::kw_true:
    case TokenKind::kw_false:
      return true;
    default:
      return false;
  }
}

bool is_arithmetic(TokenKind kind) {
  return kind == TokenKind::plus || kind == TokenKind::minus || kind == TokenKind::star || kind == TokenKind::slash ||
         kind == TokenKind::double_slash || kind == TokenKind::percent || kind == TokenKind::assign;
}

bool is_inked(char c) { return c != ' ' && c != '\t' && c != '\n' && c != '\r' && c != '#'; }

class Formatter {
 public:
  Formatter(std::string_view text, std::vector<Token> tokens) : text_(text), tokens_(std::move(tokens)) {}

  std::string run() {
    size_t at = 0;  // the text before it is done
    for (const Token& token : tokens_) {
      if (token.kind == TokenKind::newline && text_[token.begin] != ';') continue;  // seen again between the tokens
      between(text_.substr(at, token.begin - at));
      at = token.end;
      if (token.kind == TokenKind::end_of_file) break;
      if (token.kind == TokenKind::newline) {
        semicolon_ = !line_.text.empty();
      } else {
        put(token);
      }
    }
    if (!line_.text.empty() || !line_.comment.empty()) end_line();
    align(lines_);
    return join_lines(lines_);
  }

 private:
  // ---- what stands between tokens: comments and line ends

  void between(std::string_view gap) {
    size_t spaces = 0;
    for (size_t i = 0; i < gap.size(); ++i) {
      if (gap[i] == '\n') {
        line_break();
        spaces = 0;
      } else if (gap[i] == '#') {
        const size_t end = std::min(gap.find('\n', i), gap.size());
        comment(gap.substr(i, end - i), spaces);
        i = end - 1;
      } else if (gap[i] == ' ' || gap[i] == '\t') {
        ++spaces;
      }
    }
  }

  void comment(std::string_view text, size_t gap) {
    while (!text.empty() && (text.back() == ' ' || text.back() == '\t' || text.back() == '\r')) text.remove_suffix(1);
    if (line_.text.empty()) start_line(0);
    line_.comment = std::string(text);
    line_.comment_gap = std::clamp<size_t>(gap, 2, kMaxCommentGap);
  }

  void line_break() {
    semicolon_ = false;
    if (line_.text.empty() && line_.comment.empty()) {
      blank_ = !lines_.empty();
    } else {
      end_line();
    }
  }

  void end_line() {
    const bool goes_on = continued();
    if (goes_on) line_.whole_statement = false;
    lines_.push_back(std::move(line_));
    line_ = FormatLine();
    line_.whole_statement = !goes_on;
    blank_ = false;
  }

  // Whether a statement is still open: inside brackets, or behind an operator.
  bool continued() const {
    return (!open_.empty() && open_.back().kind != Bracket::block) || (previous_ != TokenKind::newline && continues_statement(previous_));
  }

  // Fixes the indentation of the line whose first token closes `closing` blocks.
  void start_line(size_t closing) {
    size_t blocks = 0;
    for (const Open& open : open_) blocks += open.kind == Bracket::block;
    line_.indent = (blocks - std::min(blocks, closing)) * kIndent;
    if (!open_.empty() && open_.back().kind != Bracket::block) {
      line_.indent = open_.back().column;
    } else if (continued()) {
      line_.indent += kContinuationIndent;
    }
    const bool after_open =
        !lines_.empty() && !lines_.back().text.empty() && lines_.back().text.back() == '{' && lines_.back().comment.empty();
    line_.blank_before = blank_ && closing == 0 && !after_open;
    blank_ = false;
  }

  // ---- tokens

  void put(const Token& token) {
    const bool tight = is_tight_keyword(token);
    if (line_.text.empty() && line_.comment.empty()) {
      start_line(token.kind == TokenKind::right_brace ? 1 : 0);
      shards_ = text_.substr(token.begin, token.end - token.begin) == "shard", behind_over_ = false;
      line_.declares = line_.whole_statement ? declared_by(token.kind) : Declares::nothing;
    } else if (semicolon_ && token.kind != TokenKind::right_brace) {
      line_.text += "; ";
      line_.whole_statement = false;
      previous_ = TokenKind::newline;
    } else if (!tight && !tight_assign_ && blank_between(token.kind)) {
      line_.text += ' ';
    }
    semicolon_ = false;
    tight_assign_ = tight;
    if (token.kind == TokenKind::tilde && line_.tilde_column == kNoColumn) line_.tilde_column = line_.text.size();
    const bool unary = token.kind == TokenKind::minus && !is_value_end(previous_);
    track_brackets(token.kind);
    line_.text += text_.substr(token.begin, token.end - token.begin);
    if (token.kind == TokenKind::colon && open_depth() == 0 && line_.type_column == kNoColumn) line_.type_column = line_.text.size() + 1;
    if (!open_.empty() && is_opening(token.kind)) open_.back().column = line_.indent + line_.text.size();
    before_previous_ = previous_;
    previous_ = token.kind;
    after_if_ = begins_if(token);
    if (token.kind == TokenKind::kw_over) behind_over_ = shards_;
    after_unary_ = unary;
  }

  // The `=` of `h=8` in a call: the author chooses whether it stands between blanks.
  bool is_tight_keyword(const Token& token) const {
    if (token.kind != TokenKind::assign || !inside(Bracket::paren) || token.end >= text_.size()) return false;
    return is_inked(text_[token.begin - 1]) && is_inked(text_[token.end]);
  }

  // The word, and no name like it: a block opens on its line.
  bool begins_if(const Token& token) const {
    if (text_.substr(token.begin, token.end - token.begin) != "if") return false;
    for (const Token* at = &token; at->kind != TokenKind::newline && at->kind != TokenKind::end_of_file; ++at)
      if (at->kind == TokenKind::left_brace) return true;
    return false;
  }

  static Declares declared_by(TokenKind kind) {
    switch (kind) {
      case TokenKind::kw_input:
        return Declares::input;
      case TokenKind::kw_param:
        return Declares::param;
      case TokenKind::kw_frozen:
        return Declares::frozen_param;
      case TokenKind::kw_state:
        return Declares::state;
      default:
        return Declares::nothing;
    }
  }

  static bool is_opening(TokenKind kind) {
    return kind == TokenKind::left_paren || kind == TokenKind::left_bracket || kind == TokenKind::left_brace;
  }

  // Brackets other than blocks' around this place.
  size_t open_depth() const { return !open_.empty() && open_.back().kind != Bracket::block ? 1 : 0; }
  bool inside(Bracket kind) const { return !open_.empty() && open_.back().kind == kind; }

  void track_brackets(TokenKind kind) {
    switch (kind) {
      case TokenKind::left_paren:
        open_.push_back({Bracket::paren, 0});
        break;
      case TokenKind::left_brace:
        open_.push_back({Bracket::block, 0});
        break;
      case TokenKind::left_bracket:
        open_.push_back({opens_type() ? Bracket::type : Bracket::index, 0});
        break;
      case TokenKind::right_paren:
      case TokenKind::right_bracket:
      case TokenKind::right_brace:
        open_.pop_back();
        break;  // the text parses: they match
      default:
        break;
    }
  }

  // `: [` and `: f32[`, where the colon is no slice's.
  bool opens_type() const {
    if (inside(Bracket::index)) return false;
    return previous_ == TokenKind::colon || (previous_ == TokenKind::name && before_previous_ == TokenKind::colon);
  }

  bool blank_between(TokenKind next) const {
    if (previous_ == TokenKind::left_paren || previous_ == TokenKind::left_bracket || after_unary_) return false;
    if (previous_ == TokenKind::left_brace && next == TokenKind::right_brace) return false;
    if (next == TokenKind::right_paren || next == TokenKind::right_bracket || next == TokenKind::comma) return false;
    if (previous_ == TokenKind::caret || next == TokenKind::caret) return false;
    if (next == TokenKind::colon) return previous_ == TokenKind::assign;  // x[n = ::2]
    if (previous_ == TokenKind::colon) return !inside(Bracket::index);
    if (next == TokenKind::left_paren) return previous_ != TokenKind::name || after_if_ || behind_over_;
    if (next == TokenKind::left_bracket) return !is_value_end(previous_);
    if (inside(Bracket::type) && (is_arithmetic(next) || is_arithmetic(previous_))) return false;
    return true;
  }

  std::string_view text_;
  std::vector<Token> tokens_;
  std::vector<FormatLine> lines_;
  FormatLine line_;
  bool blank_ = false;      // an empty line stands before the line to come
  bool semicolon_ = false;  // a `;` waits for a statement behind it
  bool after_unary_ = false;
  bool after_if_ = false;
  bool tight_assign_ = false;  // the token before was such an `=`
  bool shards_ = false;        // a `shard` line
  bool behind_over_ = false;   // in it: shard layers over stage (microbatches = 8)
  TokenKind previous_ = TokenKind::newline, before_previous_ = TokenKind::newline;
  std::vector<Open> open_;
};

}  // namespace

std::optional<std::string> format(const SourceMap& sources, FileId file, Diagnostics& diagnostics) {
  const size_t before = diagnostics.error_count();
  parse(sources, file, diagnostics);
  std::vector<Token> tokens = lex(sources, file, diagnostics);
  if (diagnostics.error_count() != before) return std::nullopt;
  return Formatter(sources.file(file).text(), std::move(tokens)).run();
}

}  // namespace einc
