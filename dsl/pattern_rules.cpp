// SPDX-License-Identifier: Apache-2.0
// einops' rules, each a small check over what the two sides of the arrow hold.
#include "dsl/pattern_rules.h"

#include <fmt/format.h>

#include <algorithm>
#include <string>
#include <unordered_map>
#include <unordered_set>

#include "dsl/near_name.h"

namespace einc {
namespace {

struct Place {
  Name name;
  Span span;
};

// What a term's atoms hold, groups and windows opened. The parser bounds the depth.
struct Contents {
  std::vector<Place> names;
  std::vector<Place> ellipses;
  std::vector<Span> grouped_ellipses;
  std::vector<Span> integers;
  std::vector<Span> windows;
  std::vector<Span> stars;
  std::vector<Span> groups;
};

enum class Level : uint8_t { top, grouped };

void gather(const std::vector<Atom>& atoms, Level level, Contents& out) {
  for (const Atom& atom : atoms) {
    switch (atom.kind) {
      case AtomKind::name:
        out.names.push_back({atom.name, atom.span});
        break;
      case AtomKind::unit:
        break;
      case AtomKind::integer:
        out.integers.push_back(atom.span);
        break;
      case AtomKind::ellipsis:
        out.ellipses.push_back({atom.name, atom.span});
        if (level == Level::grouped) out.grouped_ellipses.push_back(atom.span);
        break;
      case AtomKind::group:
        out.groups.push_back(atom.span);
        gather(atom.children, Level::grouped, out);
        break;
      case AtomKind::window:
        out.windows.push_back(atom.span);
        for (const WindowTerm& term : atom.terms) out.names.push_back({term.axis, term.axis_span});
        break;
      case AtomKind::star:
        out.stars.push_back(atom.span);
        break;
    }
  }
}

Contents contents_of(const PatternTerm& term) {
  Contents out;
  gather(term.atoms, Level::top, out);
  return out;
}

class Checker {
 public:
  Checker(PatternOp op, const Pattern& pattern, Diagnostics& diagnostics) : op_(op), diagnostics_(diagnostics) {
    for (const PatternTerm& term : pattern.inputs) inputs_.push_back(contents_of(term));
    if (op == PatternOp::einsum) apart_ = spell_apart(pattern);
    output_ = contents_of(pattern.output);
    output_span_ = pattern.output.span;
    pattern_span_ = pattern.span;
  }

  bool run() {
    const size_t before = diagnostics_.error_count();
    for (const Contents& input : inputs_) {
      if (input.ellipses.size() > 1) two_ellipses(input.ellipses[0], input.ellipses[1]);
      if (op_ != PatternOp::einsum)
        no_repeats(input, op_ == PatternOp::pack || op_ == PatternOp::unpack ? "in the pattern" : "on the left");
    }
    output_ellipses();
    ellipsis_sides();
    no_repeats(output_, "on the right");
    if (op_ == PatternOp::pack || op_ == PatternOp::unpack) return diagnostics_.error_count() == before;
    integers();
    windows();
    sides();
    if (op_ == PatternOp::einsum) summed_apart();
    return diagnostics_.error_count() == before;
  }

 private:
  void two_ellipses(const Place& first, const Place& second) {
    diagnostics_.report(Code::pattern_ellipsis, second.span, "one operand has two ellipses")
        .label(first.span, "the first is here")
        .hint("keep one `...` and name the other axes");
  }

  // Those of several operands may stand beside each other on the right, each once.
  void output_ellipses() {
    for (size_t i = 0; i < output_.ellipses.size(); ++i)
      for (size_t k = 0; k < i; ++k)
        if (output_.ellipses[k].name == output_.ellipses[i].name) two_ellipses(output_.ellipses[k], output_.ellipses[i]);
  }

  // `...k` where `k` is an axis of an operand: PyTorch's spelling.
  bool names_axis(Name name) const {
    return !name.empty() && std::ranges::any_of(inputs_, [&](const Contents& input) {
      return std::ranges::any_of(input.names, [&](const Place& place) { return place.name == name; });
    });
  }

  static const Place* find_ellipsis(const Contents& term, Name name) {
    for (const Place& place : term.ellipses)
      if (place.name == name) return &place;
    return nullptr;
  }

  void ellipsis_sides() {
    for (const Contents& input : inputs_)
      for (const Span span : input.grouped_ellipses)
        diagnostics_.report(Code::pattern_ellipsis, span, "an ellipsis is not allowed in a group on the left")
            .hint("on the left `...` is an axis list of its own; on the right `(...)` joins its axes");
    for (const Place& place : output_.ellipses)
      if (std::ranges::none_of(inputs_, [&](const Contents& input) { return find_ellipsis(input, place.name) != nullptr; }))
        diagnostics_.report(Code::pattern_ellipsis, place.span, "the ellipsis on the right stands for nothing: the left has none")
            .hint(apart_                   ? fmt::format("names of axes are words, separated by spaces: \"{}\"", *apart_)
                  : names_axis(place.name) ? fmt::format("a space separates an ellipsis from an axis: `... {}`", place.name.str())
                                           : fmt::format("write `...{}` on the left too", place.name.str()));
    if (op_ != PatternOp::rearrange && op_ != PatternOp::repeat) return;
    for (const Contents& input : inputs_)
      for (const Place& place : input.ellipses)
        if (input.ellipses.size() == 1 && !find_ellipsis(output_, place.name))
          diagnostics_.report(Code::pattern_ellipsis, place.span, "the axes of the ellipsis on the left are lost: the right has none")
              .hint("write `...{}` on the right too, or use reduce", place.name);
  }

  void no_repeats(const Contents& term, std::string_view where) {
    std::unordered_map<Name, Span> seen;
    for (const Place& place : term.names) {
      const auto [first, is_new] = seen.emplace(place.name, place.span);
      if (is_new) continue;
      auto report = diagnostics_.report(Code::pattern_duplicate, place.span, place.name, where);
      report.label(first->second, "the first is here");
      if (op_ != PatternOp::einsum) report.hint("a diagonal is an einsum: einsum(x, \"i i -> i\"); else give each axis its own name");
    }
  }

  // One mistake: what lacks names on the left lacks them on the right too.
  void integers() {
    const auto refuse = [&](Span span, std::string_view message, std::string_view hint) {
      diagnostics_.report(Code::pattern_integer, span, message).hint(hint);
    };
    const bool left_ok = op_ == PatternOp::reduce || op_ == PatternOp::einsum;
    for (const Contents& input : inputs_)
      if (!left_ok && !input.integers.empty())
        return refuse(input.integers[0], "an axis without a name on the left would be lost",
                      "name each axis, as in \"h w -> w h\", or use reduce");
    for (const Span span : output_.integers)
      if (op_ != PatternOp::repeat)
        refuse(span, "an axis without a name on the right stands for nothing on the left", "a new axis is made by repeat");
  }

  void windows() {
    if (op_ == PatternOp::einsum) return;
    for (const Span span : output_.windows)
      diagnostics_.report(Code::pattern_window, span, "a window `(2*h + kh)` is allowed only on the right of an einsum")
          .hint("here windows read an input axis; write `(h kh)` for a composed axis");
  }

  void sides() {
    std::unordered_map<Name, Span> left, right;
    for (const Contents& input : inputs_)
      for (const Place& place : input.names) left.emplace(place.name, place.span);
    for (const Place& place : output_.names) right.emplace(place.name, place.span);
    if (op_ == PatternOp::rearrange && one_axis_of_two_names(left, right)) return;
    if (op_ == PatternOp::rearrange || op_ == PatternOp::repeat)
      for (const Contents& input : inputs_)
        for (const Place& place : input.names)
          if (!right.contains(place.name))
            diagnostics_.report(Code::pattern_one_sided, place.span, place.name, "left", to_string(op_))
                .label(output_span_, "missing here")
                .hint("write `{}` on the right too, or use reduce to sum, average, ... over it", place.name);
    if (op_ == PatternOp::repeat) return;
    for (const Place& place : output_.names) {
      if (left.contains(place.name)) continue;
      auto report = diagnostics_.report(Code::pattern_one_sided, place.span, place.name, "right", to_string(op_));
      if (const auto near = apart_ ? std::nullopt : near_left(place.name, right))
        report.did_you_mean(place.span, *near);
      else if (apart_)
        report.hint("names of axes are words, separated by spaces: \"{}\"", *apart_).replace(pattern_span_, *apart_);
      else
        report.hint(op_ == PatternOp::einsum ? "every name on the right of an einsum must be in an operand; a new axis is made by repeat"
                                             : "a new axis is made by repeat");
    }
  }

  // One name that the right lacks and one that the left lacks: one axis, misnamed.
  bool one_axis_of_two_names(const std::unordered_map<Name, Span>& left, const std::unordered_map<Name, Span>& right) {
    const auto lacking = [](const std::vector<Place>& places, const std::unordered_map<Name, Span>& other) {
      std::vector<const Place*> found;
      for (const Place& place : places)
        if (!other.contains(place.name)) found.push_back(&place);
      return found;
    };
    const auto lost = lacking(inputs_[0].names, right), made = lacking(output_.names, left);
    if (lost.size() != 1 || made.size() != 1 || apart_) return false;
    diagnostics_.report(Code::pattern_one_sided, made[0]->span, made[0]->name, "right", to_string(op_))
        .label(lost[0]->span, "and this one only on the left")
        .hint("an axis has one name on both sides: did you mean `{}`?", lost[0]->name)
        .replace(made[0]->span, lost[0]->name.str());
    return true;
  }

  // Two operands each with an axis that no other term has: by names that are one slip apart, one axis was meant.
  void summed_apart() {
    std::unordered_map<Name, int> terms;
    const auto count = [&](const Contents& term) {
      std::unordered_set<Name> seen;
      for (const Place& place : term.names)
        if (seen.insert(place.name).second) ++terms[place.name];
    };
    for (const Contents& input : inputs_) count(input);
    count(output_);
    for (size_t i = 0; i < inputs_.size(); ++i)
      for (const Place& one : inputs_[i].names)
        for (size_t k = 0; k < i; ++k)
          for (const Place& other : inputs_[k].names)
            if (terms[one.name] == 1 && terms[other.name] == 1 && is_slip(one.name.str(), other.name.str()))
              diagnostics_.report(Code::axes_summed_apart, one.span, other.name, one.name)
                  .label(other.span, "and here")
                  .did_you_mean(one.span, other.name.str());
  }

  // One letter too many, too few or wrong, or two exchanged; not at the end, where names are numbered and made plural.
  static bool is_slip(std::string_view a, std::string_view b) {
    if (std::min(a.size(), b.size()) < 4 || edit_distance(a, b, 1) != 1) return false;
    std::string letters(a), others(b);
    std::ranges::sort(letters);
    std::ranges::sort(others);
    return letters == others || a.back() == b.back();
  }

  // A name of the left that the right lacks, near to one that it has.
  std::optional<std::string> near_left(Name wanted, const std::unordered_map<Name, Span>& right) const {
    std::vector<std::string_view> names;
    for (const Contents& input : inputs_)
      for (const Place& place : input.names)
        if (!right.contains(place.name)) names.push_back(place.name.str());
    return near_name(wanted.str(), names);
  }

  PatternOp op_;
  Diagnostics& diagnostics_;
  std::vector<Contents> inputs_;
  Contents output_;
  Span output_span_, pattern_span_;
  std::optional<std::string> apart_;  // spell_apart
};

}  // namespace

std::optional<std::string> spell_apart(const Pattern& pattern) {
  std::string seen;
  const auto spell = [](const PatternTerm& term) -> std::optional<std::string> {
    std::string text;
    size_t words = 0;
    for (const Atom& atom : term.atoms) {
      if (atom.kind == AtomKind::ellipsis) {
        text += text.empty() ? "..." : " ...";
        if (atom.name.empty()) continue;
      } else if (atom.kind != AtomKind::name) {
        return std::nullopt;
      }
      if (++words > 1) return std::nullopt;
      for (const char c : atom.name.str()) {
        if (!((c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z'))) return std::nullopt;
        text += text.empty() ? "" : " ";
        text += c;
      }
    }
    return text;
  };
  std::string text;
  bool compact = false;
  for (const PatternTerm& input : pattern.inputs) {
    const auto letters = spell(input);
    if (!letters) return std::nullopt;
    for (const Atom& atom : input.atoms)
      if (!atom.name.empty()) seen += atom.name.str(), compact = compact || atom.name.str().size() > 1;
    text += (text.empty() ? "" : ", ") + *letters;
  }
  const auto output = spell(pattern.output);
  if (!compact || !output) return std::nullopt;
  for (const Atom& atom : pattern.output.atoms)
    if (!atom.name.empty() && atom.name.str().find_first_not_of(seen) != std::string::npos) return std::nullopt;
  return text + " -> " + *output;
}

bool check_pattern(PatternOp op, const Pattern& pattern, Diagnostics& diagnostics) { return Checker(op, pattern, diagnostics).run(); }

}  // namespace einc
