// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/pattern_solver.h"

#include <algorithm>
#include <iterator>
#include <sstream>

#include "compiler/elaborate/pattern_layout.h"
#include "compiler/elaborate/scope.h"
#include "compiler/elaborate/show.h"
#include "compiler/elaborate/size_limit.h"
#include "compiler/symbolic/order.h"
#include "dsl/near_name.h"

namespace einc {

namespace {

bool same_size(const Poly& a, const Poly& b) { return a == b || provably_equal(a, b); }

std::string ordinal(size_t index) { return fmt::format("axis {}", index + 1); }

// Works on one pattern; the steps of solve() run in the order in which they stand below.
class Solver {
 public:
  Solver(Context& context, const Pattern& pattern, const std::vector<PatternOperand>& operands, const std::vector<GivenSize>& given)
      : context_(context), pattern_(pattern), operands_(operands), given_(given) {}

  std::optional<SolvedPattern> solve() {
    auto layout = read_layout(context_, pattern_, operands_, given_);
    if (!layout) return std::nullopt;
    layout_ = std::move(*layout);
    take_given();
    take_declared();
    take_plain_axes();
    if (!failed_) solve_groups();
    if (!failed_) find_unsolved();
    if (failed_) return std::nullopt;
    std::vector<Axis> all;
    for (const Label& l : layout_.labels) all.push_back({l.name, *l.size});
    if (!check_size_terms(diagnostics(), all, pattern_.span)) return std::nullopt;
    SolvedPattern result{{}, std::move(layout_.operands), std::move(layout_.output)};
    for (const Label& l : layout_.labels) {
      result.labels.push_back({l.name, *l.size, l.where});
      if (l.written && !context_.declared_size(l.name)) context_.introduce_local(l.name, *l.size, l.where);
    }
    return result;
  }

 private:
  using Label = LayoutLabel;

  const Axis& axis_of(const AxisEquation& e) const { return operands_[e.operand].type.axes[e.axis]; }
  Label& label(int id) { return layout_.labels[static_cast<size_t>(id)]; }

  Diagnostics& diagnostics() { return context_.diagnostics(); }
  template <class T>
  std::string shown(const T& sizes_or_type) {
    return show(context_.build().graph(), sizes_or_type);
  }

  // ---- sizes that are known beforehand

  void take_given() {
    for (const GivenSize& g : given_) {
      const auto it = layout_.by_name.find(g.name);
      if (it == layout_.by_name.end()) {
        if (std::find(layout_.stride_names.begin(), layout_.stride_names.end(), g.name) == layout_.stride_names.end()) report_unused(g);
        continue;
      }
      if (const auto n = g.size.as_integer(); n && *n < 1) {
        diagnostics().report(Code::pattern_given_size, g.where, g.name, shown(g.size), "an axis has at least 1 element");
        failed_ = true;
        continue;
      }
      const auto declared = context_.declared_size(g.name);
      if (declared && !same_size(*declared, g.size)) {
        diagnostics()
            .report(Code::pattern_given_size, g.where, g.name, shown(g.size),
                    fmt::format("the declared size is {}", context_.describe_size(*declared)))
            .hint("leave the size out, or use another name");
        failed_ = true;
        continue;
      }
      set_size(it->second, g.size, g.where, "given here");
    }
  }

  void report_unused(const GivenSize& g) {
    std::vector<std::string_view> names;
    for (const Label& l : layout_.labels)
      if (l.written) names.push_back(l.name.str());
    auto report = diagnostics().report(Code::pattern_unused_size, g.where, g.name);
    if (const auto near = near_name(g.name.str(), names))
      report.did_you_mean(g.where, *near);
    else if (!names.empty())
      report.hint("the pattern's axes are {}", fmt::to_string(fmt::join(names, ", ")));
    failed_ = true;
  }

  void take_declared() {
    for (size_t i = 0; i < layout_.labels.size(); ++i) {
      if (!layout_.labels[i].written || layout_.labels[i].size) continue;
      if (const auto size = context_.declared_size(layout_.labels[i].name)) set_size(static_cast<int>(i), *size, Span{}, "a declared size");
    }
  }

  void set_size(int id, const Poly& size, Span origin, std::string text) {
    label(id).size = size;
    label(id).origin = origin;
    label(id).origin_text = std::move(text);
  }

  void take_plain_axes() {
    for (AxisEquation& e : layout_.equations) {
      PatternLeaf* leaf = e.leaf_count == 1 ? &leaf_at(e, 0) : nullptr;
      const Axis& axis = axis_of(e);
      if (e.leaf_count == 0) {
        if (!same_size(axis.size, Poly(1))) report_literal(e, "1");
        e.done = true;
      } else if (leaf != nullptr && !leaf->is_window()) {
        Label& l = label(leaf->labels[0]);
        if (!l.size)
          set_size(leaf->labels[0], axis.size, e.where, fmt::format("{} of {}", ordinal(e.axis), operands_[e.operand].text));
        else if (!same_size(*l.size, axis.size))
          report_mismatch(e, l);
        leaf->size = axis.size;
        e.done = true;
      }
    }
  }

  PatternLeaf& leaf_at(const AxisEquation& e, size_t k) { return layout_.operands[e.operand].leaves[e.first_leaf + k]; }

  void report_literal(const AxisEquation& e, std::string_view number) {
    diagnostics()
        .report(Code::pattern_literal_size, e.where, ordinal(e.axis), operands_[e.operand].text, context_.describe_size(axis_of(e).size),
                number)
        .label(operands_[e.operand].where, "{} is `{}`", operands_[e.operand].text, shown(operands_[e.operand].type));
    failed_ = true;
  }

  void report_mismatch(const AxisEquation& e, const Label& l) {
    failed_ = true;
    if (transposed_ == e.operand) return;  // said once for all of its axes
    if (l.name.empty() && !l.ellipsis) return report_literal(e, shown(*l.size));
    const std::string name = l.ellipsis ? "the same axis of `...`" : fmt::format("`{}`", l.name.str());
    const std::string size = shown(*l.size);
    const std::string clash = size == l.name.str() ? fmt::format("the pattern calls it `{}`", size) : fmt::format("{} is {}", name, size);
    auto report =
        diagnostics().report(Code::pattern_size, e.where, ordinal(e.axis), operands_[e.operand].text, shown(axis_of(e).size), clash);
    if (l.origin.known())
      report.label(l.origin, "{} is {}: {}", name, size, l.origin_text);
    else
      hint_at_names(report, e, l);
    report.label(operands_[e.operand].where, "{} is `{}`", operands_[e.operand].text, shown(operands_[e.operand].type));
  }

  // A name that has a declared size, at an axis of another one. Mostly the operand's axes stand in another order, or it is
  // another operand than was meant: its own names tell.
  void hint_at_names(Diagnostics::Builder& report, const AxisEquation& e, const Label& l) {
    const PatternOperand& operand = operands_[e.operand];
    const std::string written = names_in(pattern_.inputs[e.operand]);
    const std::string own = axis_names(operand.type);
    const Axis& axis = axis_of(e);
    const auto visible = axis.is_named() && !is_foreign(axis.name) ? context_.visible_size(axis.name) : std::nullopt;
    if (sorted_words(written) == sorted_words(own)) {
      transposed_ = e.operand;
      report.hint("{} is [{}]: write `{}` here, or make it [{}]", operand.text, own, own, written)
          .replace(pattern_.inputs[e.operand].span, own);
      return;
    }
    if (visible && *visible == axis.size && axis.name != l.name)
      report.hint("this axis of {} is `{}`: write `{}` here, or give an operand whose axis is `{}`", operand.text, axis.name, axis.name,
                  l.name);
    else
      report.hint("a declared name has its declared size, {}: use another name for this axis", context_.describe_size(*l.size));
  }

  // The plain names of a term; empty when it has anything else.
  static std::string names_in(const PatternTerm& term) {
    std::string text;
    for (const Atom& atom : term.atoms) {
      if (atom.kind != AtomKind::name) return "";
      text += (text.empty() ? "" : " ") + atom.name.str();
    }
    return text;
  }

  static std::string axis_names(const Type& type) {
    std::string text;
    for (const Axis& axis : type.axes) text += (text.empty() ? "" : " ") + without_marks(axis.name).str();
    return text;
  }

  static std::vector<std::string> sorted_words(const std::string& text) {
    std::istringstream stream(text);
    std::vector<std::string> words{std::istream_iterator<std::string>(stream), {}};
    std::sort(words.begin(), words.end());
    return words;
  }

  // ---- groups and windows, until nothing changes

  void solve_groups() {
    bool changed = true;
    while (changed && !failed_) {
      changed = false;
      for (AxisEquation& e : layout_.equations)
        if (!e.done && !failed_) changed = solve_axis(e) || changed;
    }
  }

  // True when it found something out.
  bool solve_axis(AxisEquation& e) {
    Poly known(1);
    PatternLeaf* unknown = nullptr;
    std::vector<Axis> factors;
    for (size_t k = 0; k < e.leaf_count; ++k) {
      PatternLeaf& leaf = leaf_at(e, k);
      if (!leaf.is_window() && label(leaf.labels[0]).size) leaf.size = *label(leaf.labels[0]).size;
      if (!leaf.size.is_zero()) {
        factors.push_back({Name(), leaf.size});
        if (!check_size_terms(diagnostics(), factors, e.where)) return !(failed_ = true);
        known *= leaf.size;
      } else if (unknown == nullptr) {
        unknown = &leaf;
      } else {
        return false;
      }
    }
    if (unknown != nullptr) {
      if (!divide_axis(e, known, *unknown)) return false;
      if (!unknown->is_window()) return e.done = true;
    } else if (!same_size(known, axis_of(e).size)) {
      report_group(e, known);
      return false;
    }
    bool all_done = true, changed = unknown != nullptr;
    for (size_t k = 0; k < e.leaf_count && !failed_; ++k) {
      PatternLeaf& leaf = leaf_at(e, k);
      if (!leaf.is_window()) continue;
      const bool solved = solve_window(e, leaf);
      all_done = all_done && solved;
      changed = changed || solved;
    }
    e.done = all_done;
    return changed;
  }

  bool divide_axis(const AxisEquation& e, const Poly& known, PatternLeaf& unknown) {
    const Poly& size = axis_of(e).size;
    Condition condition{ConditionKind::divides, size, known, -1, fmt::format("axis `{}`", e.text)};
    const Verdict verdict = decide(condition);
    if (verdict == Verdict::never) {
      report_division(e, known);
      return false;
    }
    if (verdict == Verdict::depends) context_.require(std::move(condition), e.where);
    unknown.size = divide(size, known);
    if (!unknown.is_window())
      set_size(unknown.labels[0], unknown.size, e.where, fmt::format("{} / {} in `{}`", shown(size), shown(known), e.text));
    return true;
  }

  void report_division(const AxisEquation& e, const Poly& known) {
    failed_ = true;
    const Axis& axis = axis_of(e);
    auto report =
        diagnostics().report(Code::pattern_division, e.where, ordinal(e.axis), operands_[e.operand].text, shown(axis.size), shown(known));
    label_sources(report, e);
    if (const auto n = axis.size.as_integer())
      report.hint("{} = {} * ? has no solution; the divisors of {} are {}", *n, shown(known), *n, divisors(*n));
  }

  static std::string divisors(int64_t n) {
    std::vector<int64_t> small, large;
    for (int64_t d = 1; d <= 10000 && d * d <= n; ++d) {
      if (n % d != 0) continue;
      small.push_back(d);
      if (d * d != n) large.push_back(n / d);
    }
    small.insert(small.end(), large.rbegin(), large.rend());
    constexpr size_t kShown = 16;
    const bool cut = small.size() > kShown;
    if (cut) small.resize(kShown);
    return fmt::format("{}{}", fmt::join(small, ", "), cut ? ", ..." : "");
  }

  void report_group(const AxisEquation& e, const Poly& product) {
    failed_ = true;
    const Axis& axis = axis_of(e);
    auto report = diagnostics().report(Code::pattern_group, e.where, ordinal(e.axis), operands_[e.operand].text, shown(axis.size), e.text,
                                       shown(product));
    label_sources(report, e);
    if (!pattern_.output.atoms.empty() && e.leaf_count == 2 && label(leaf_at(e, 0).labels[0]).size &&
        *label(leaf_at(e, 0).labels[0]).size == axis.size)
      report.hint("a group splits an axis into its factors; a window, as of a convolution, is written with `+`: ({} + {})",
                  leaf_at(e, 0).text, leaf_at(e, 1).text);
  }

  void label_sources(Diagnostics::Builder& report, const AxisEquation& e) {
    for (size_t k = 0; k < e.leaf_count; ++k)
      for (const int id : leaf_at(e, k).labels)
        if (label(id).size && label(id).origin.known() && !label(id).name.empty())
          report.label(label(id).origin, "`{}` is {}: {}", label(id).name, shown(*label(id).size), label(id).origin_text);
    report.label(operands_[e.operand].where, "{} is `{}`", operands_[e.operand].text, shown(operands_[e.operand].type));
  }

  // A window over an axis of S elements: places n = floor((S - 1 - sum over the other terms of c*(size - 1)) / c_n) + 1.
  bool solve_window(const AxisEquation& e, PatternLeaf& leaf) {
    int unknown = -1;
    for (size_t k = 0; k < leaf.labels.size(); ++k) {
      if (label(leaf.labels[k]).size) continue;
      if (unknown >= 0) return false;
      unknown = static_cast<int>(k);
    }
    if (unknown >= 0) {
      const size_t term = static_cast<size_t>(unknown);
      if (!check_room(e, leaf, term)) return false;
      set_size(leaf.labels[term], places(leaf, term), e.where,
               fmt::format("as many places as fit `{}` in {}", leaf.text, shown(leaf.size)));
      return true;
    }
    return check_full(e, leaf);
  }

  // What is left of the axis for one more step of term `skip`.
  Poly room(const PatternLeaf& leaf, size_t skip) {
    Poly rest = leaf.size - Poly(1);
    for (size_t k = 0; k < leaf.labels.size(); ++k)
      if (k != skip) rest -= leaf.strides[k] * (*label(leaf.labels[k]).size - Poly(1));
    return rest;
  }

  // A dim declared as h/2 says that h is even: half as many places then are that dim, and no floor.
  Poly places(const PatternLeaf& leaf, size_t term) {
    return without_floors(floor_divide(room(leaf, term), leaf.strides[term]) + Poly(1), context_.build().graph().dims.definitions());
  }

  bool check_room(const AxisEquation& e, const PatternLeaf& leaf, size_t term) {
    const Poly needed = leaf.size - room(leaf, term);
    Condition fits{ConditionKind::at_least, leaf.size, needed, -1, fmt::format("window `{}`", leaf.text)};
    const Verdict verdict = decide(fits);
    if (verdict == Verdict::never) {
      failed_ = true;
      auto report = diagnostics().report(Code::pattern_window_room, e.where, leaf.text, shown(needed), ordinal(e.axis),
                                         operands_[e.operand].text, shown(leaf.size));
      label_sources(report, e);
      return false;
    }
    if (verdict == Verdict::depends) context_.require(std::move(fits), e.where);
    return true;
  }

  // All sizes known: one of them must be what fits, else places would be lost unsaid.
  bool check_full(const AxisEquation& e, const PatternLeaf& leaf) {
    for (size_t k = 0; k < leaf.labels.size(); ++k)
      if (same_size(places(leaf, k), *label(leaf.labels[k]).size)) return check_room(e, leaf, k);
    if (!check_room(e, leaf, 0)) return false;
    const Poly fitting = places(leaf, 0);
    Condition full{ConditionKind::equal, fitting, *label(leaf.labels[0]).size, -1, fmt::format("window `{}`", leaf.text)};
    if (!leaf.strides[0].is_one() && decide(full) == Verdict::depends) {
      context_.require(std::move(full), e.where);
      return true;
    }
    failed_ = true;
    const Label& first = label(leaf.labels[0]);
    auto report = diagnostics().report(Code::pattern_window_size, e.where, shown(leaf.size), shown(fitting), leaf.text, first.name,
                                       shown(*first.size));
    if (!first.origin.known()) report.hint("a declared name has its declared size: call the places by another name");
    label_sources(report, e);
    return false;
  }

  // ---- what is left

  void find_unsolved() {
    for (const AxisEquation& e : layout_.equations) {
      if (e.done) continue;
      std::vector<std::string> names;
      for (size_t k = 0; k < e.leaf_count; ++k)
        for (const int id : leaf_at(e, k).labels)
          if (!label(id).size) names.push_back(fmt::format("`{}`", label(id).name.str()));
      failed_ = true;
      auto report = diagnostics().report(Code::pattern_undetermined, e.where, fmt::to_string(fmt::join(names, " and ")));
      report.label(operands_[e.operand].where, "{} is `{}`", operands_[e.operand].text, shown(operands_[e.operand].type));
      report.hint("give {} of them beside the pattern, as in `{}`", names.size() > 2 ? "all but one" : "one", example_of(names.back()));
    }
    if (failed_) return;
    for (const Label& l : layout_.labels) {
      if (l.size) continue;
      failed_ = true;
      diagnostics().report(Code::pattern_new_axis, l.where, l.name).hint("give its size beside the pattern: `{}=2`", l.name);
    }
  }

  static std::string example_of(std::string_view quoted) { return fmt::format("{}=2", quoted.substr(1, quoted.size() - 2)); }

  Context& context_;
  const Pattern& pattern_;
  const std::vector<PatternOperand>& operands_;
  const std::vector<GivenSize>& given_;
  PatternLayout layout_;
  bool failed_ = false;
  size_t transposed_ = SIZE_MAX;  // an operand of which that was said
};

}  // namespace

std::string count_of(size_t n, std::string_view thing) {
  if (n == 1) return fmt::format("1 {}", thing);
  return thing == "axis" ? fmt::format("{} axes", n) : fmt::format("{} {}s", n, thing);
}

std::vector<int> SolvedPattern::output_labels() const {
  std::vector<int> all;
  for (const OutputAxis& axis : output) all.insert(all.end(), axis.labels.begin(), axis.labels.end());
  return all;
}

Axis SolvedPattern::output_axis(const OutputAxis& out) const {
  if (out.is_window()) {
    Axis spread{Name(out.text), Poly(1)};
    for (size_t k = 0; k < out.labels.size(); ++k) spread.size += out.strides[k] * (size(out.labels[k]) - Poly(1));
    return spread;
  }
  if (out.labels.size() == 1) return axis(out.labels[0]);
  Axis composed{Name(), Poly(1)};
  std::string text = "(";
  for (const int label : out.labels) {
    const PatternLabel& l = labels[static_cast<size_t>(label)];
    composed.size *= l.size;
    text += (text.size() > 1 ? " " : "") + (l.name.empty() ? l.size.str() : without_marks(l.name).str());
  }
  if (!out.labels.empty()) composed.name = Name(text + ")");
  return composed;
}

std::optional<SolvedPattern> solve_pattern(Context& context, const Pattern& pattern, const std::vector<PatternOperand>& operands,
                                           const std::vector<GivenSize>& given) {
  return Solver(context, pattern, operands, given).solve();
}

}  // namespace einc
