// SPDX-License-Identifier: Apache-2.0
// One pass over the text. The lexer knows which bracket is open, because that decides whether a line's end ends a
// statement; where a keyword that begins statements opens a line inside a bracket, the bracket was forgotten, and the
// statement is ended there, so that only one statement is lost. Every character is looked at a bounded number of times.
#include <algorithm>
#include <array>
#include <charconv>

#include "dsl/token.h"
#include "runtime/base/ascii.h"

namespace einc {
namespace {

struct Sign {
  std::string_view text;
  TokenKind kind;
};

// Signs, longest first.
constexpr std::array<Sign, 25> kSigns{{
    {"...", TokenKind::ellipsis},  {"<-", TokenKind::arrow_left},  {"<=", TokenKind::less_equal},   {">=", TokenKind::greater_equal},
    {"==", TokenKind::equal},      {"!=", TokenKind::not_equal},   {"//", TokenKind::double_slash}, {"(", TokenKind::left_paren},
    {")", TokenKind::right_paren}, {"[", TokenKind::left_bracket}, {"]", TokenKind::right_bracket}, {"{", TokenKind::left_brace},
    {"}", TokenKind::right_brace}, {",", TokenKind::comma},        {":", TokenKind::colon},         {"=", TokenKind::assign},
    {"~", TokenKind::tilde},       {"+", TokenKind::plus},         {"-", TokenKind::minus},         {"*", TokenKind::star},
    {"/", TokenKind::slash},       {"%", TokenKind::percent},      {"^", TokenKind::caret},         {"<", TokenKind::less},
    {">", TokenKind::greater},
}};

// What people write from habit, with what stands for it here.
struct Habit {
  std::string_view text;
  std::string_view hint;
  TokenKind stands_for;          // invalid: nothing
  std::string_view replacement;  // empty: none
};

constexpr auto kHabits = std::to_array<Habit>({
    {"**", "a power is written `^`", TokenKind::caret, "^"},
    {"->", "a pattern is written in double quotes: \"a b -> b a\"", TokenKind::invalid, ""},
    {"=>", "an arrow is allowed only inside a pattern string, as `->`", TokenKind::invalid, ""},
    {"&&", "write `and`", TokenKind::kw_and, "and"},
    {"||", "write `or`", TokenKind::kw_or, "or"},
    {"&", "write `and`", TokenKind::kw_and, "and"},
    {"|", "write `or`", TokenKind::kw_or, "or"},
    {":=", "write `=`", TokenKind::assign, "="},
    {"!", "write `not`", TokenKind::kw_not, "not "},
    {"?", "a choice by value is where(c, a, b)", TokenKind::invalid, ""},
    {"@", "a matrix product is an einsum: einsum(a, b, \"i j, j k -> i k\")", TokenKind::star, ""},
    {"<<", "a shift is a product: x * 2^n", TokenKind::invalid, ""},
    {">>", "a shift is a quotient: x // 2^n", TokenKind::invalid, ""},
    {"\\", "a statement goes on behind an operator, a comma and inside parentheses", TokenKind::invalid, ""},
    {"'", "strings are written in double quotes", TokenKind::invalid, ""},
    {"\xE2\x80\xA6", "an ellipsis is three dots: ...", TokenKind::ellipsis, "..."},
    {"\xE2\x88\x92", "a minus is the sign `-`", TokenKind::minus, "-"},
    {"\xE2\x89\xA4", "write `<=`", TokenKind::less_equal, "<="},
    {"\xE2\x89\xA5", "write `>=`", TokenKind::greater_equal, ">="},
    {"\xE2\x89\xA0", "write `!=`", TokenKind::not_equal, "!="},
    {"\xC3\x97", "a product is written `*`", TokenKind::star, "*"},
    {"\xC2\xB7", "a product is written `*`", TokenKind::star, "*"},
    {"\xE2\x86\x92", "an arrow is allowed only inside a pattern string, as `->`", TokenKind::invalid, ""},
    {"\xE2\x80\x9C", "strings are written in straight double quotes", TokenKind::invalid, ""},
    {"\xE2\x80\x9D", "strings are written in straight double quotes", TokenKind::invalid, ""},
});

constexpr auto kUpdates = std::to_array<std::string_view>({"**=", "//=", "+=", "-=", "*=", "/=", "%=", "^=", "&=", "|=", "@="});

class Lexer {
 public:
  Lexer(std::string_view text, FileId file, Diagnostics& diagnostics) : text_(text), file_(file), diagnostics_(diagnostics) {}

  std::vector<Token> run() {
    while (skip_blanks()) {
      if (tokens_.size() >= kMaxTokens) return too_many();
      const char c = text_[at_];
      if (c == '\n') {
        line_end();
      } else if (c == ';') {
        push(TokenKind::newline, at_ + 1);
        line_start_ = true;
      } else if (is_name_start(c)) {
        word();
      } else if (is_digit(c) || (c == '.' && is_digit(peek(1)))) {
        number();
      } else if (c == '"' || (c == '\'' && closes_on_this_line())) {
        string();
      } else if (!foreign_comment() && !decorator() && !update() && !habit() && !dot() && !sign()) {
        unknown();
      }
    }
    push(TokenKind::end_of_file, text_.size());
    return std::move(tokens_);
  }

 private:
  char peek(size_t ahead) const { return at_ + ahead < text_.size() ? text_[at_ + ahead] : '\0'; }
  Span span(size_t begin, size_t end) const { return {file_, static_cast<uint32_t>(begin), static_cast<uint32_t>(end)}; }

  // Emits the token [at_, end) and moves behind it.
  void push(TokenKind kind, size_t end) {
    tokens_.push_back({kind, static_cast<uint32_t>(at_), static_cast<uint32_t>(end)});
    at_ = end;
  }

  // To the next character of a token; false at the end of the text.
  bool skip_blanks() {
    while (at_ < text_.size()) {
      const char c = text_[at_];
      if (c == '#') {
        at_ = std::min(text_.find('\n', at_), text_.size());
      } else if (c == ' ' || c == '\t' || c == '\r') {
        ++at_;
      } else {
        return true;
      }
    }
    return false;
  }

  void word() {
    size_t end = at_ + 1;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    const TokenKind kind = keyword_kind(text_.substr(at_, end - at_));
    const size_t next = std::min(text_.find_first_not_of(" \t", end), text_.size());
    const bool names_argument = next < text_.size() && text_[next] == '=';  // `input = 8` in a call
    if (line_start_ && begins_statement(kind) && !names_argument) close_forgotten_brackets();
    line_start_ = false;
    if (end < text_.size() && text_[end] == '"' && end - at_ <= 2 && prefixes_string(text_.substr(at_, end - at_))) {
      diagnostics_.report(Code::unknown_character, span(at_, end), text_.substr(at_, end - at_))
          .hint("a string has no letter before it; sizes are given after a pattern: (x, \"(h d) -> h d\", h=8)")
          .replace(span(at_, end), "");
      at_ = end;
      return;
    }
    push(kind, end);
  }

  // f"...", rb"...": Python's.
  static bool prefixes_string(std::string_view word) { return word.find_first_not_of("fFrRbBuU") == std::string_view::npos; }

  bool closes_on_this_line() const {
    const size_t stop = text_.find_first_of("'\n", at_ + 1);
    return stop < text_.size() && text_[stop] == '\'';
  }

  // A statement begins although a ( or [ is open: end the statement before it, so that only that one is lost.
  void close_forgotten_brackets() {
    if (!inside_bracket()) return;
    drop_brackets();
    tokens_.push_back({TokenKind::newline, static_cast<uint32_t>(at_), static_cast<uint32_t>(at_)});
  }

  void line_end() {
    const bool skip =
        inside_bracket() || tokens_.empty() || tokens_.back().kind == TokenKind::newline || continues_statement(tokens_.back().kind);
    if (skip)
      ++at_;
    else
      push(TokenKind::newline, at_ + 1);
    line_start_ = true;
  }

  std::vector<Token> too_many() {
    diagnostics_.report(Code::too_many_tokens, span(at_, at_ + 1)).hint("split the file, and import its parts");
    tokens_.clear();
    push(TokenKind::end_of_file, text_.size());
    return std::move(tokens_);
  }

  bool inside_bracket() const { return !open_.empty() && open_.back() != TokenKind::left_brace; }

  void number() {
    const size_t begin = at_;
    size_t end = at_;
    const auto digits = [&] {
      while (end < text_.size() && (is_digit(text_[end]) || text_[end] == '_')) ++end;
    };
    digits();
    bool real = false;
    if (end < text_.size() && text_[end] == '.' && (end + 1 == text_.size() || text_[end + 1] != '.')) {
      real = true;
      ++end;
      digits();
    }
    if (end < text_.size() && (text_[end] == 'e' || text_[end] == 'E')) {
      size_t exponent = end + 1;
      if (exponent < text_.size() && (text_[exponent] == '+' || text_[exponent] == '-')) ++exponent;
      if (exponent < text_.size() && is_digit(text_[exponent])) {
        real = true;
        end = exponent;
        digits();
      }
    }
    const size_t well_formed = end;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    check_number(text_.substr(begin, end - begin), span(begin, end), real, end == well_formed);
    line_start_ = false;
    push(real ? TokenKind::real : TokenKind::integer, end);
  }

  void check_number(std::string_view text, Span place, bool real, bool well_formed) {
    const bool underscores = text.back() == '_' || text.find("__") != std::string_view::npos || text.find("_.") != std::string_view::npos ||
                             text.find("._") != std::string_view::npos || text.find("_e") != std::string_view::npos;
    if (!well_formed || underscores) {
      const bool other_base = text.size() > 1 && text[0] == '0' && is_letter(text[1]);
      diagnostics_.report(Code::malformed_number, place, text)
          .hint(other_base ? "numbers are written in decimal"
                : text.size() > 1 && (text.back() == 'f' || text.back() == 'L')
                    ? "a number has no letter behind it: its dtype is that of its neighbour"
                : text.back() == 'e' || text.back() == 'E' ? "an exponent has digits: 1e3"
                : !underscores && is_digit(text[0]) ? "a product is written with `*`, as in 2*x, and a name cannot begin with a digit"
                                                    : "`_` is allowed only between digits");
      return;
    }
    std::string digits;
    for (const char c : text)
      if (c != '_') digits += c;
    if (real) {
      double value = 0;
      const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
      if (error != std::errc()) diagnostics_.report(Code::real_out_of_range, place, text).hint("write `inf` or `0` if that is meant");
      return;
    }
    if (digits.size() > 1 && digits[0] == '0') {
      diagnostics_.report(Code::malformed_number, place, text).hint("an integer has no leading zeros: octal is not meant, is it?");
      return;
    }
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(digits.data(), digits.data() + digits.size(), value);
    if (error != std::errc())
      diagnostics_.report(Code::integer_too_large, place, text).hint("a real number may be larger: write it as in 1e20");
  }

  void string() {
    if (text_.substr(at_).starts_with("\"\"\"")) return long_string();
    const char quote = text_[at_];
    const size_t stop = std::min(text_.find(quote, at_ + 1), text_.find('\n', at_ + 1));
    const bool closed = stop < text_.size() && text_[stop] == quote;
    const size_t end = closed ? stop + 1 : std::min(stop, text_.size());
    if (quote == '\'') {
      diagnostics_.report(Code::unknown_character, span(at_, at_ + 1), "'")
          .hint("strings are written in double quotes")
          .replace(span(at_, at_ + 1), "\"")
          .replace(span(end - 1, end), "\"");
    }
    if (!closed) {
      diagnostics_.report(Code::unclosed_string, span(at_, at_ + 1))
          .label(span(end, end), stop < text_.size() ? "the line ends here" : "the file ends here")
          .hint("a string ends with `\"` on the line where it begins");
    }
    line_start_ = false;
    push(TokenKind::string, end);
  }

  // """...""": Python's docstring. Where a statement begins it is skipped whole, as the comment that was meant.
  void long_string() {
    const size_t stop = text_.find("\"\"\"", at_ + 3);
    const size_t end = stop == std::string_view::npos ? std::min(text_.find('\n', at_), text_.size()) : stop + 3;
    auto report = diagnostics_.report(Code::unknown_character, span(at_, at_ + 3), "\"\"\"");
    report.hint("a comment begins with `#` on each of its lines; a string is one line in double quotes");
    if (stop != std::string_view::npos && begins_a_statement()) report.replace(span(at_, end), as_comment(at_, end));
    if (!begins_a_statement()) return push(TokenKind::invalid, end);
    at_ = end;
  }

  std::string as_comment(size_t begin, size_t end) const {
    std::string text = "# ";
    for (const char c : text_.substr(begin + 3, end - begin - 6)) text += c == '\n' ? std::string("\n# ") : std::string(1, c);
    return text;
  }

  // `// ...` and `/* ... */` where a statement begins, or `/*` anywhere: skipped as the comment that was meant.
  bool foreign_comment() {
    const std::string_view rest = text_.substr(at_);
    const bool block = rest.starts_with("/*");
    if (!block && !(rest.starts_with("//") && begins_a_statement())) return false;
    const size_t stop = block ? text_.find("*/", at_ + 2) : text_.find('\n', at_);
    const size_t end = stop == std::string_view::npos ? text_.size() : block ? stop + 2 : stop;
    auto report = diagnostics_.report(Code::unknown_character, span(at_, at_ + 2), rest.substr(0, 2));
    report.hint("comments begin with `#`");
    if (!block) report.replace(span(at_, at_ + 2), "#");
    at_ = end;
    return true;
  }

  // `y += e`
  bool update() {
    const std::string_view rest = text_.substr(at_);
    const auto found = std::find_if(kUpdates.begin(), kUpdates.end(), [&](std::string_view u) { return rest.starts_with(u); });
    if (found == kUpdates.end() || rest.substr(found->size()).starts_with('=')) return false;
    const bool named = !tokens_.empty() && tokens_.back().kind == TokenKind::name;
    const std::string name(named ? text_.substr(tokens_.back().begin, tokens_.back().end - tokens_.back().begin) : "y");
    const std::string sign(*found == "**=" ? "^" : found->substr(0, found->size() - 1));
    auto report = diagnostics_.report(Code::unknown_character, span(at_, at_ + found->size()), *found);
    report.hint("write the whole assignment: {} = {} {} ...", name, name, sign);
    if (named && sign == "+") report.replace(span(at_, at_ + 2), "= " + name + " +");
    line_start_ = false;
    push(TokenKind::invalid, at_ + found->size());
    return true;
  }

  // `x.view`, `f(x).T`: the parser says what stands for it.
  bool dot() {
    if (text_[at_] != '.' || at_ == 0 || !is_name_start(peek(1))) return false;
    const char before = text_[at_ - 1];
    if (!is_name_char(before) && before != ')' && before != ']') return false;
    push(TokenKind::dot, at_ + 1);
    return true;
  }

  bool begins_a_statement() const {
    if (tokens_.empty()) return true;
    const TokenKind last = tokens_.back().kind;
    return last == TokenKind::newline || last == TokenKind::left_brace || last == TokenKind::right_brace;
  }

  // `@jit` on a line of its own, as in Python.
  bool decorator() {
    if (text_[at_] != '@' || !line_start_) return false;
    const size_t end = std::min(text_.find('\n', at_), text_.size());
    diagnostics_.report(Code::unknown_character, span(at_, at_ + 1), "@")
        .hint("there are no decorators: every fn is compiled. Leave the line out")
        .replace(span(at_, end), "");
    at_ = end;
    return true;
  }

  bool habit() {
    const std::string_view rest = text_.substr(at_);
    if (rest.starts_with("!=")) return false;
    for (const Habit& h : kHabits) {
      if (!rest.starts_with(h.text)) continue;
      const size_t end = at_ + h.text.size();
      const bool of_fn = h.text == "->" && !tokens_.empty() && tokens_.back().kind == TokenKind::right_paren;
      auto report = diagnostics_.report(Code::unknown_character, span(at_, end), h.text);
      report.hint(of_fn ? "a fn's result has no type of its own; annotate what is returned instead: return y: [a b]" : h.hint);
      if (!h.replacement.empty()) report.replace(span(at_, end), h.replacement);
      line_start_ = false;
      push(h.stands_for, end);
      return true;
    }
    return false;
  }

  bool sign() {
    const std::string_view rest = text_.substr(at_);
    for (const Sign& s : kSigns) {
      if (!rest.starts_with(s.text)) continue;
      emit_sign(s);
      return true;
    }
    return false;
  }

  void emit_sign(const Sign& s) {
    if (s.kind == TokenKind::ellipsis && peek(3) == '.') return dots();
    bracket(s.kind);
    push(s.kind, at_ + s.text.size());
    line_start_ = false;
  }

  // Keeps open_ true to the text; a closing sign that fits nothing is left to the parser.
  void bracket(TokenKind kind) {
    switch (kind) {
      case TokenKind::left_paren:
      case TokenKind::left_bracket:
        open_.push_back(kind);
        ++(kind == TokenKind::left_paren ? parens_ : brackets_);
        break;
      case TokenKind::right_paren:
        close(TokenKind::left_paren);
        break;
      case TokenKind::right_bracket:
        close(TokenKind::left_bracket);
        break;
      case TokenKind::left_brace:  // no block stands in brackets
        drop_brackets();
        open_.push_back(kind);
        break;
      case TokenKind::right_brace:
        if (line_start_) close_forgotten_brackets();
        drop_brackets();
        if (!open_.empty()) open_.pop_back();
        break;
      default:
        break;
    }
  }

  // Drops the brackets down to the opening one, if there is one in this block.
  void close(TokenKind opening) {
    size_t& count = opening == TokenKind::left_paren ? parens_ : brackets_;
    if (count == 0) return;
    for (bool found = false; !found; open_.pop_back()) {
      found = open_.back() == opening;
      --(open_.back() == TokenKind::left_paren ? parens_ : brackets_);
    }
  }

  void drop_brackets() {
    while (inside_bracket()) open_.pop_back();
    parens_ = brackets_ = 0;
  }

  void dots() {
    size_t end = at_;
    while (end < text_.size() && text_[end] == '.') ++end;
    diagnostics_.report(Code::malformed_ellipsis, span(at_, end), text_.substr(at_, end - at_)).hint("write `...`");
    push(TokenKind::ellipsis, end);
  }

  void unknown() {
    if (text_[at_] == '.' && peek(1) == '.') return dots();
    size_t end = at_ + 1;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    const std::string_view character = text_.substr(at_, end - at_);
    while (text_.substr(end).starts_with(character)) end += character.size();  // a run of one sign is one mistake
    diagnostics_.report(Code::unknown_character, span(at_, end), character);
    push(TokenKind::invalid, end);
  }

  std::string_view text_;
  FileId file_;
  Diagnostics& diagnostics_;
  size_t at_ = 0;
  bool line_start_ = true;  // no token yet on this line
  std::vector<TokenKind> open_;
  size_t parens_ = 0, brackets_ = 0;  // in open_, above the last brace
  std::vector<Token> tokens_;
};

}  // namespace

std::vector<Token> lex(const SourceMap& sources, FileId file, Diagnostics& diagnostics) {
  return Lexer(sources.file(file).text(), file, diagnostics).run();
}

}  // namespace einc
