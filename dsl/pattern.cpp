// SPDX-License-Identifier: Apache-2.0
// Recursive descent over a pattern's characters, stopping at the first mistake; check_pattern then looks at the names. A group
// is known to be a window when a `+` or `*` comes before any other bracket in it. The commonest slips are shown put right.
#include "dsl/pattern.h"

#include <fmt/format.h>

#include <array>
#include <charconv>
#include <string>
#include <utility>

#include "dsl/pattern_rules.h"
#include "runtime/base/ascii.h"

namespace einc {
namespace {

constexpr std::array<std::string_view, 6> kOpNames{"einsum", "rearrange", "reduce", "repeat", "pack", "unpack"};

bool is_blank(char c) { return c == ' ' || c == '\t'; }

Atom make_atom(AtomKind kind, Span span) {
  Atom atom;
  atom.kind = kind;
  atom.span = span;
  return atom;
}

constexpr int kMaxRepairs = 16;  // slips in one pattern that are put right together

std::string replaced(std::string_view text, size_t at, size_t length, std::string_view by) {
  return fmt::format("{}{}{}", text.substr(0, at), by, text.substr(at + length));
}

class PatternParser {
 public:
  PatternParser(PatternOp op, std::string_view text, Span contents, Diagnostics& diagnostics)
      : op_(op), text_(text), contents_(contents), diagnostics_(diagnostics) {}

  std::optional<Pattern> run() {
    Pattern pattern;
    pattern.span = contents_;
    const bool ok = is_packing() ? packing(pattern) : arrow_pattern(pattern);
    if (!ok || !check_pattern(op_, pattern, diagnostics_)) return std::nullopt;
    return pattern;
  }

 private:
  bool is_packing() const { return op_ == PatternOp::pack || op_ == PatternOp::unpack; }
  Span span(size_t begin, size_t end) const {
    return {contents_.file, contents_.begin + static_cast<uint32_t>(begin), contents_.begin + static_cast<uint32_t>(end)};
  }
  void skip_blanks() {
    while (at_ < text_.size() && is_blank(text_[at_])) ++at_;
  }
  bool at_end() const { return at_ == text_.size(); }
  bool next_is(std::string_view sign) const { return text_.substr(at_).starts_with(sign); }

  // Hints at the pattern put right. Other slips may remain in it: they are put right likewise, and where that fails the hint is `words`.
  void hint_repair(Diagnostics::Builder report, size_t at, size_t length, std::string_view by, std::string_view words) {
    std::string text = replaced(text_, at, length, by);
    if (repairs_ < kMaxRepairs) {
      Diagnostics unseen;
      PatternParser again(op_, text, contents_, unseen);
      again.repairs_ = repairs_ + 1;
      if (again.run())
        right_ = std::move(text);
      else
        right_ = std::move(again.right_);
    }
    if (right_)
      report.hint("\"{}\"", *right_);
    else if (!words.empty())
      report.hint(words);
  }

  // ---- whole patterns

  bool arrow_pattern(Pattern& pattern) {
    for (;;) {
      if (!term(pattern.inputs.emplace_back())) return false;
      if (at_end()) return no_arrow();
      if (next_is("->")) break;
      if (op_ != PatternOp::einsum) return comma();
      if (pattern.inputs.size() == kMaxEinsumOperands) return too_many_operands();
      ++at_;
    }
    const size_t arrow = at_;
    pattern.arrow = span(arrow, arrow + 2);
    at_ += 2;
    if (!term(pattern.output)) return false;
    if (at_end()) return true;
    if (next_is(",")) return comma();
    diagnostics_.report(Code::pattern_arrow, span(at_, at_ + 2), "a pattern has one arrow, and this is its second")
        .label(pattern.arrow, "the first is here")
        .hint("\"{}\"", text_.substr(0, text_.find_last_not_of(' ', at_ - 1) + 1));
    return false;
  }

  bool no_arrow() {
    auto report = diagnostics_.report(Code::pattern_arrow, contents_, "the pattern has no arrow");
    if (op_ == PatternOp::reduce && !text_.empty() && text_.find_first_of(" ():") == std::string_view::npos)
      report.hint("the pattern comes before the reduction: reduce(x, \"a b -> a\", \"{}\")", text_);
    else
      report.hint("write the result's axes after it: \"{} -> ...\"", text_);
    return false;
  }

  bool comma() {
    hint_repair(diagnostics_.report(Code::pattern_terms, span(at_, at_ + 1),
                                    op_ == PatternOp::einsum ? "an einsum has one result: `,` separates operands on the left"
                                                             : "`,` separates the operands of an einsum; here is one operand"),
                at_, 1, next_is(", ") ? "" : " ", "axes are separated by spaces");
    return false;
  }

  bool too_many_operands() {
    diagnostics_.report(Code::einsum_too_many_operands, span(at_, at_ + 1), kMaxEinsumOperands).hint("split it into several");
    return false;
  }

  bool packing(Pattern& pattern) {
    if (!term(pattern.inputs.emplace_back())) return false;
    if (!at_end()) {
      diagnostics_
          .report(Code::pattern_terms, span(at_, text_.size()), "a pattern of pack or unpack names the axes of the packed tensor only")
          .hint("such as \"batch * channel\"");
      return false;
    }
    size_t stars = 0;
    for (const Atom& atom : pattern.inputs[0].atoms) {
      if (atom.kind == AtomKind::star) ++stars;
      if (atom.kind == AtomKind::name || (atom.kind == AtomKind::star && stars == 1)) continue;
      diagnostics_.report(Code::pattern_star, atom.span,
                          stars > 1 ? "the pattern has a second `*`" : "a pattern of pack or unpack has only names and one `*`");
      return false;
    }
    if (stars == 1) return true;
    diagnostics_.report(Code::pattern_star, contents_, "the pattern has no `*`")
        .hint("`*` marks the place of the packed axes: \"{} *\"", text_);
    return false;
  }

  // ---- terms and atoms

  // Atoms up to `,`, `->` or the end.
  bool term(PatternTerm& out) {
    skip_blanks();
    const size_t begin = at_;
    leaves_ = 0;
    if (!atoms(out.atoms, 0)) return false;
    size_t end = at_;
    while (end > begin && is_blank(text_[end - 1])) --end;
    out.span = span(begin, end);
    if (at_end() || next_is(",") || next_is("->")) return true;
    hint_repair(diagnostics_.report(Code::pattern_bracket, span(at_, at_ + 1), "`)` closes nothing"), at_, 1, "", "");
    return false;
  }

  // Atoms up to `)`, `,`, `->` or the end.
  bool atoms(std::vector<Atom>& out, int depth) {
    for (skip_blanks(); !at_end(); skip_blanks()) {
      const char c = text_[at_];
      if (c == ')' || c == ',' || next_is("->")) return true;
      if (!(c == '(' ? group(out, depth + 1) : atom(out))) return false;
    }
    return true;
  }

  // Takes one more of what a term may hold kMaxAxes of.
  bool count_leaf(Span place) {
    if (++leaves_ <= kMaxAxes) return true;
    diagnostics_.report(Code::pattern_axes, place, kMaxAxes);
    return false;
  }

  bool atom(std::vector<Atom>& out) {
    const char c = text_[at_];
    if (is_name_char(c)) return word(out) && count_leaf(out.back().span);
    if (c == '.') return dots(out) && count_leaf(out.back().span);
    if (c == '*' && is_packing()) {
      out.push_back(make_atom(AtomKind::star, span(at_, at_ + 1)));
      ++at_;
      return count_leaf(out.back().span);
    }
    return strange();
  }

  bool word(std::vector<Atom>& out) {
    size_t end = at_;
    while (end < text_.size() && is_name_char(text_[end])) ++end;
    const std::string_view text = text_.substr(at_, end - at_);
    Atom atom = make_atom(AtomKind::name, span(at_, end));
    if (is_digit(text[0])) {
      const std::optional<int64_t> value = integer(text, atom.span);
      if (!value) return false;
      if (*value == 0) {
        diagnostics_.report(Code::pattern_integer, atom.span, "an axis has at least one element");
        return false;
      }
      atom.kind = *value == 1 ? AtomKind::unit : AtomKind::integer;
      atom.value = *value;
    } else {
      if (!axis_name(text, atom.span)) return false;
      atom.name = Name(text);
    }
    at_ = end;
    out.push_back(std::move(atom));
    return true;
  }

  std::optional<int64_t> integer(std::string_view text, Span place) {
    int64_t value = 0;
    const auto [stop, error] = std::from_chars(text.data(), text.data() + text.size(), value);
    if (error == std::errc::result_out_of_range) {
      diagnostics_.report(Code::integer_too_large, place, text);
      return std::nullopt;
    }
    if (stop != text.data() + text.size()) {
      diagnostics_.report(Code::pattern_name, place, text, "a name does not begin with a digit")
          .hint("separate axes by blanks, and name this one otherwise");
      return std::nullopt;
    }
    return value;
  }

  bool axis_name(std::string_view text, Span place) {
    if (text.front() != '_' && text.back() != '_') return true;
    size_t first = text.find_first_not_of('_'), last = text.find_last_not_of('_');
    auto report = diagnostics_.report(Code::pattern_name, place, text, "an axis of a pattern neither begins nor ends with `_`");
    if (first != std::string_view::npos && !is_digit(text[first])) report.hint("call it `{}`", text.substr(first, last + 1 - first));
    return false;
  }

  bool dots(std::vector<Atom>& out) {
    size_t end = at_;
    while (end < text_.size() && text_[end] == '.') ++end;
    const Span place = span(at_, end);
    if (end - at_ != 3) {
      hint_repair(diagnostics_.report(Code::pattern_dots, place, text_.substr(at_, end - at_)), at_, end - at_, "...", "");
      return false;
    }
    size_t name_end = end;
    if (end < text_.size() && !is_digit(text_[end]))
      while (name_end < text_.size() && is_name_char(text_[name_end])) ++name_end;
    const std::string_view name = text_.substr(end, name_end - end);
    if (!name.empty() && !axis_name(name, span(end, name_end))) return false;
    out.push_back(make_atom(AtomKind::ellipsis, span(at_, name_end)));
    out.back().name = Name(name);
    at_ = name_end;
    return true;
  }

  // A character that begins no atom; the common slips are shown put right.
  bool strange() {
    struct Slip {
      std::string_view text, meant;
      Code code;
      std::string_view message;
    };
    static constexpr std::array<Slip, 7> kSlips{{
        {"\xE2\x86\x92", "->", Code::pattern_arrow, "an arrow is written `->`"},
        {"\xE2\x9F\xB6", "->", Code::pattern_arrow, "an arrow is written `->`"},
        {"\xE2\x80\xA6", "...", Code::pattern_dots, ""},
        {"=>", "->", Code::pattern_arrow, "an arrow is written `->`"},
        {"- >", "->", Code::pattern_arrow, "an arrow is written `->`, without a blank"},
        {"--", "-", Code::pattern_arrow, "an arrow is written `->`"},
        {">", "->", Code::pattern_arrow, "an arrow is written `->`"},
    }};
    for (const Slip& slip : kSlips) {
      if (!next_is(slip.text)) continue;
      const Span place = span(at_, at_ + slip.text.size());
      const std::string_view shown = slip.code == Code::pattern_dots ? slip.text : slip.message;
      hint_repair(diagnostics_.add(slip.code, place, fmt::vformat(info(slip.code).message, fmt::make_format_args(shown))), at_,
                  slip.text.size(), slip.meant, "");
      return false;
    }
    size_t end = at_ + 1;
    while (end < text_.size() && (static_cast<unsigned char>(text_[end]) & 0xC0) == 0x80) ++end;
    const std::string_view character = text_.substr(at_, end - at_);
    auto report = diagnostics_.report(Code::pattern_character, span(at_, end), character);
    if (character == "+" || character == "*")
      report.hint("a window is written in parentheses: (2*h + kh)");
    else if (character == ";")
      report.hint("operands are separated by commas").replace(span(at_, end), ",");
    else if (character == "[" || character == "{")
      report.hint("a group is written in parentheses: (h d)");
    else
      report.hint("a pattern holds axis names, `...`, groups in parentheses, integers and one `->`");
    return false;
  }

  // ---- groups and windows

  bool group(std::vector<Atom>& out, int depth) {
    const size_t begin = at_;
    if (depth > kMaxPatternNesting) {
      diagnostics_.report(Code::nested_too_deep, span(begin, begin + 1));
      return false;
    }
    ++at_;
    if (is_window()) return window(out, begin, depth);
    Atom atom = make_atom(AtomKind::group, span(begin, at_));
    if (!atoms(atom.children, depth)) return false;
    if (!close(begin)) return false;
    atom.span = span(begin, at_);
    if (atom.children.empty()) {
      if (!count_leaf(atom.span)) return false;
      atom.kind = AtomKind::unit;
    }
    out.push_back(std::move(atom));
    return true;
  }

  // Whether a `+` or `*` stands in the group just opened, before any other bracket.
  bool is_window() const {
    const size_t sign = text_.find_first_of("()+*,", at_);
    return !is_packing() && sign != std::string_view::npos && (text_[sign] == '+' || text_[sign] == '*');
  }

  bool close(size_t open) {
    skip_blanks();
    if (!at_end() && text_[at_] == ')') {
      ++at_;
      return true;
    }
    diagnostics_.report(Code::pattern_bracket, span(open, open + 1), "`(` is never closed").label(span(at_, at_), "expected `)` here");
    return false;
  }

  bool window(std::vector<Atom>& out, size_t open, int depth) {
    Atom atom = make_atom(AtomKind::window, span(open, at_));
    for (;;) {
      if (!window_term(atom.terms.emplace_back()) || !count_leaf(atom.terms.back().axis_span)) return false;
      for (size_t i = 0; i + 1 < atom.terms.size(); ++i)
        if (atom.terms[i].axis == atom.terms.back().axis)
          return bad_window(atom.terms.back().axis_span, "an axis appears twice in one window");
      skip_blanks();
      if (!next_is("+")) break;
      ++at_;
      if (atom.terms.size() == kMaxWindowTerms) return bad_window(span(open, at_), "a window has at most 16 terms");
    }
    if (!at_end() && text_[at_] != ')') return bad_window(span(at_, at_ + 1), "expected `+`, `*` or `)` in a window");
    if (!close(open)) return false;
    atom.span = span(open, at_);
    if (depth > 1) return bad_window(atom.span, "a window is an axis of its own and is not allowed inside a group");
    out.push_back(std::move(atom));
    return true;
  }

  bool bad_window(Span place, std::string_view message) {
    diagnostics_.report(Code::pattern_window, place, message)
        .hint("a window is a sum of axes, each once, with whole factors: (2*h + 3*kh)");
    return false;
  }

  // name | factor*name | name*integer
  bool window_term(WindowTerm& out) {
    skip_blanks();
    const size_t begin = at_;
    std::vector<Atom> factors;
    for (;;) {
      skip_blanks();
      if (at_end() || !is_name_char(text_[at_]))
        return bad_window(span(at_, std::min(at_ + 1, text_.size())), "expected an axis name or an integer");
      if (!word(factors)) return false;
      skip_blanks();
      if (!next_is("*")) break;
      ++at_;
    }
    out.span = join(factors.front().span, factors.back().span);
    if (factors.size() > 2) return bad_window(out.span, "a term of a window has at most one factor before its axis");
    Atom axis = factors.back();
    if (factors.size() == 2) {
      Atom factor = factors.front();
      if (axis.kind != AtomKind::name) std::swap(axis, factor);
      out.coefficient_span = factor.span;
      out.coefficient_name = factor.name;
      out.coefficient = factor.value;
    }
    if (axis.kind != AtomKind::name) return bad_window(span(begin, at_), "a term of a window names an axis");
    out.axis = axis.name;
    out.axis_span = axis.span;
    return true;
  }

  static constexpr size_t kMaxWindowTerms = 16;

  PatternOp op_;
  std::string_view text_;
  Span contents_;
  Diagnostics& diagnostics_;
  size_t at_ = 0;
  size_t leaves_ = 0;  // of the term at hand
  int repairs_ = 0;    // that made this text
  std::optional<std::string> right_;
};

bool holds_ellipsis(const std::vector<Atom>& atoms) {
  for (const Atom& atom : atoms)
    if (atom.kind == AtomKind::ellipsis || holds_ellipsis(atom.children)) return true;
  return false;
}

}  // namespace

bool PatternTerm::has_ellipsis() const { return holds_ellipsis(atoms); }

std::optional<PatternOp> pattern_op(std::string_view function_name) {
  for (size_t i = 0; i < kOpNames.size(); ++i)
    if (kOpNames[i] == function_name) return static_cast<PatternOp>(i);
  return std::nullopt;
}

std::string_view to_string(PatternOp op) { return kOpNames[static_cast<size_t>(op)]; }

std::optional<Pattern> parse_pattern(PatternOp op, std::string_view text, Span contents, Diagnostics& diagnostics) {
  return PatternParser(op, text, contents, diagnostics).run();
}

}  // namespace einc
