// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/pattern_layout.h"

#include <algorithm>

#include "compiler/elaborate/arguments.h"
#include "compiler/elaborate/show.h"
#include "dsl/pattern_rules.h"

namespace einc {

namespace {

std::string text_of(const Atom& atom) {
  switch (atom.kind) {
    case AtomKind::name:
      return atom.name.str();
    case AtomKind::unit:
      return "1";
    case AtomKind::integer:
      return std::to_string(atom.value);
    case AtomKind::ellipsis:
      return "..." + atom.name.str();
    case AtomKind::star:
      return "*";
    case AtomKind::group: {
      std::string text = "(";
      for (const Atom& child : atom.children) text += (text.size() > 1 ? " " : "") + text_of(child);
      return text + ")";
    }
    case AtomKind::window: {
      std::string text = "(";
      for (const WindowTerm& term : atom.terms) {
        if (text.size() > 1) text += " + ";
        if (!term.coefficient_name.empty())
          text += term.coefficient_name.str() + "*";
        else if (term.coefficient != 1)
          text += std::to_string(term.coefficient) + "*";
        text += term.axis.str();
      }
      return text + ")";
    }
  }
  return {};
}

class LayoutReader {
 public:
  LayoutReader(Context& context, const Pattern& pattern, const std::vector<PatternOperand>& operands, const std::vector<GivenSize>& given)
      : context_(context), pattern_(pattern), operands_(operands), given_(given) {}

  std::optional<PatternLayout> read() {
    if (!collect_inputs() || !collect_output()) return std::nullopt;
    return std::move(layout_);
  }

 private:
  struct Ellipsis {
    std::vector<int> labels;  // of the axes that it stands for, from the right
    size_t count = 0;         // of them, where it was first written
    Span where;
  };

  Diagnostics& diagnostics() { return context_.diagnostics(); }
  std::string shown(const Type& type) { return show(context_.build().graph(), type); }

  int label_named(Name name, Span where) {
    const auto [it, added] = layout_.by_name.try_emplace(name, static_cast<int>(layout_.labels.size()));
    if (added) {
      LayoutLabel fresh;
      fresh.name = name;
      fresh.where = where;
      fresh.written = true;
      layout_.labels.push_back(std::move(fresh));
    }
    return it->second;
  }

  int anonymous_label(int64_t size, Span where) {
    LayoutLabel fresh;
    fresh.where = fresh.origin = where;
    fresh.size = Poly(size);
    fresh.origin_text = "written here";
    layout_.labels.push_back(std::move(fresh));
    return static_cast<int>(layout_.labels.size()) - 1;
  }

  // Ellipses align from the right: `from_right` 0 is the last axis of each.
  int ellipsis_label(Ellipsis& ellipsis, size_t from_right, const Axis& axis, Span where) {
    while (ellipsis.labels.size() <= from_right) ellipsis.labels.push_back(-1);
    if (ellipsis.labels[from_right] < 0) {
      ellipsis.labels[from_right] = static_cast<int>(layout_.labels.size());
      LayoutLabel fresh;
      fresh.name = axis.name;
      fresh.ellipsis = true;
      fresh.where = where;
      layout_.labels.push_back(std::move(fresh));
    }
    return ellipsis.labels[from_right];
  }

  // One with a name stands for the same number of axes wherever it is written.
  Ellipsis& ellipsis_named(const Atom& atom, size_t count) {
    Ellipsis& ellipsis = ellipses_[atom.name];
    if (!ellipsis.where.known()) {
      ellipsis.where = atom.span;
      ellipsis.count = count;
    } else if (!atom.name.empty() && ellipsis.count != count) {
      diagnostics()
          .report(Code::pattern_ellipsis, atom.span, fmt::format("`...{}` stands for {} here", atom.name.str(), count_of(count, "axis")))
          .label(ellipsis.where, "and for {} here", count_of(ellipsis.count, "axis"))
          .hint("give the two different names");
      failed_ = true;
    }
    return ellipsis;
  }

  bool collect_inputs() {
    if (pattern_.inputs.size() != operands_.size()) {
      diagnostics()
          .report(Code::pattern_operand_count, pattern_.span, count_of(pattern_.inputs.size(), "operand"),
                  count_of(operands_.size(), "tensor"))
          .hint("one part between commas for each tensor");
      return false;
    }
    if (exchanged()) return false;
    for (size_t t = 0; t < operands_.size(); ++t) collect_operand(t);
    return !failed_;
  }

  // Two operands of other ranks than their parts of the pattern, which fit when they change places.
  bool exchanged() {
    if (operands_.size() != 2) return false;
    size_t ranks[2];
    for (size_t t = 0; t < 2; ++t) {
      for (const Atom& atom : pattern_.inputs[t].atoms)
        if (atom.kind == AtomKind::ellipsis) return false;
      ranks[t] = pattern_.inputs[t].atoms.size();
    }
    const auto rank = [&](size_t t) { return operands_[t].type.axes.size(); };
    if (ranks[0] == ranks[1] || ranks[0] != rank(1) || ranks[1] != rank(0)) return false;
    auto report = diagnostics().report(Code::pattern_rank, pattern_.inputs[0].span, count_of(ranks[0], "axis"), operands_[0].text,
                                       count_of(rank(0), "axis"), shown(operands_[0].type));
    for (const PatternOperand& operand : operands_) report.label(operand.where, "{} is `{}`", operand.text, shown(operand.type));
    report.hint("the tensors come in the order of the pattern's parts: exchange {} and {}", operands_[0].text, operands_[1].text);
    return true;
  }

  void collect_operand(size_t t) {
    const PatternTerm& term = pattern_.inputs[t];
    const PatternOperand& operand = operands_[t];
    const size_t rank = operand.type.axes.size();
    const size_t dots = static_cast<size_t>(
        std::count_if(term.atoms.begin(), term.atoms.end(), [](const Atom& a) { return a.kind == AtomKind::ellipsis; }));
    const size_t fixed = term.atoms.size() - dots;
    OperandLayout& layout = layout_.operands.emplace_back();
    if (dots == 0 ? fixed != rank : fixed > rank) {
      auto report = diagnostics().report(Code::pattern_rank, term.span.size() > 0 ? term.span : pattern_.span,
                                         fmt::format("{}{}", dots == 0 ? "" : "at least ", count_of(fixed, "axis")), operand.text,
                                         count_of(rank, "axis"), shown(operand.type));
      report.label(operand.where, "{} is `{}`", operand.text, shown(operand.type));
      const auto apart = spell_apart(pattern_);
      if (apart && term.atoms.size() == 1 && term.atoms[0].name.str().size() == rank)
        report.hint("names of axes are words, separated by spaces: \"{}\"", *apart);
      else if (fixed < rank)
        report.hint("name every axis, or let `...` stand for the others");
      failed_ = true;
      return;
    }
    size_t axis = 0;
    for (const Atom& atom : term.atoms) {
      const size_t count = atom.kind == AtomKind::ellipsis ? rank - fixed : 1;
      Ellipsis* ellipsis = atom.kind == AtomKind::ellipsis ? &ellipsis_named(atom, count) : nullptr;
      for (size_t k = 0; k < count; ++k, ++axis) {
        AxisEquation equation{t, axis, layout.leaves.size(), 0, atom.span, text_of(atom)};
        if (ellipsis)
          layout.leaves.push_back(leaf_of(ellipsis_label(*ellipsis, count - 1 - k, operand.type.axes[axis], atom.span), atom));
        else
          add_leaves(atom, layout.leaves);
        equation.leaf_count = layout.leaves.size() - equation.first_leaf;
        layout.counts.push_back(static_cast<int>(equation.leaf_count));
        layout_.equations.push_back(std::move(equation));
      }
    }
    rank_of_leaves(layout.leaves, term.span);
  }

  void rank_of_leaves(const std::vector<PatternLeaf>& leaves, Span where) {
    size_t rank = 0;
    for (const PatternLeaf& leaf : leaves) rank += leaf.labels.size();
    failed_ = !check_rank(context_, rank, where) || failed_;
  }

  static PatternLeaf leaf_of(int label_id, const Atom& atom) { return {{label_id}, {}, Poly(), text_of(atom)}; }

  // Nested groups flatten, units vanish.
  void add_leaves(const Atom& atom, std::vector<PatternLeaf>& leaves) {
    switch (atom.kind) {
      case AtomKind::name:
        leaves.push_back(leaf_of(label_named(atom.name, atom.span), atom));
        return;
      case AtomKind::integer:
        leaves.push_back(leaf_of(anonymous_label(atom.value, atom.span), atom));
        return;
      case AtomKind::unit:
        return;
      case AtomKind::group:
        for (const Atom& child : atom.children) add_leaves(child, leaves);
        return;
      case AtomKind::window:
        leaves.push_back(window_leaf(atom));
        return;
      case AtomKind::ellipsis:
      case AtomKind::star:
        EINC_CHECK(false, "the pattern parser lets `{}` through", text_of(atom));
    }
  }

  PatternLeaf window_leaf(const Atom& atom) {
    PatternLeaf leaf;
    leaf.text = text_of(atom);
    for (const WindowTerm& term : atom.terms) {
      leaf.labels.push_back(label_named(term.axis, term.axis_span));
      leaf.strides.push_back(term.coefficient_name.empty() ? Poly(term.coefficient) : stride_named(term));
    }
    return leaf;
  }

  Poly stride_named(const WindowTerm& term) {
    for (const GivenSize& g : given_)
      if (g.name == term.coefficient_name) {
        layout_.stride_names.push_back(g.name);
        return g.size;
      }
    if (const auto size = context_.declared_size(term.coefficient_name)) return *size;
    diagnostics()
        .report(Code::pattern_stride, term.coefficient_span, term.coefficient_name)
        .hint("declare it with `dim`, or give it beside the pattern: `{}=2`", term.coefficient_name);
    failed_ = true;
    return Poly(1);
  }

  bool collect_output() {
    for (const Atom& atom : pattern_.output.atoms) {
      if (atom.kind == AtomKind::ellipsis) {
        const std::vector<int>& labels = ellipses_[atom.name].labels;
        for (size_t k = labels.size(); k-- > 0;) layout_.output.push_back({{labels[k]}, {}, {}});
        continue;
      }
      OutputAxis axis;
      add_output(atom, axis);
      layout_.output.push_back(std::move(axis));
    }
    size_t split = 0;  // before composed axes are merged
    for (const OutputAxis& axis : layout_.output) split += axis.labels.size();
    failed_ = !check_rank(context_, std::max(split, layout_.output.size()), pattern_.output.span) || failed_;
    return !failed_;
  }

  void add_output(const Atom& atom, OutputAxis& axis) {
    if (atom.kind == AtomKind::ellipsis) {
      const std::vector<int>& labels = ellipses_[atom.name].labels;
      for (size_t k = labels.size(); k-- > 0;) axis.labels.push_back(labels[k]);
      return;
    }
    if (atom.kind == AtomKind::group) {
      for (const Atom& child : atom.children) add_output(child, axis);
      return;
    }
    std::vector<PatternLeaf> leaves;
    add_leaves(atom, leaves);
    if (atom.kind == AtomKind::window) {
      axis.strides = leaves[0].strides;
      axis.text = leaves[0].text;
    }
    for (const PatternLeaf& leaf : leaves) axis.labels.insert(axis.labels.end(), leaf.labels.begin(), leaf.labels.end());
  }

  Context& context_;
  const Pattern& pattern_;
  const std::vector<PatternOperand>& operands_;
  const std::vector<GivenSize>& given_;
  std::unordered_map<Name, Ellipsis> ellipses_;  // by name; the plain one's is empty
  PatternLayout layout_;
  bool failed_ = false;
};

}  // namespace

std::optional<PatternLayout> read_layout(Context& context, const Pattern& pattern, const std::vector<PatternOperand>& operands,
                                         const std::vector<GivenSize>& given) {
  return LayoutReader(context, pattern, operands, given).read();
}

}  // namespace einc
