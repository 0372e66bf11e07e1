// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/decide.h"

#include <limits>
#include <optional>

namespace einc {
namespace {

class Deciding {
 public:
  Deciding(const Graph& graph, NodeId id, const Factors& factors, std::span<const Layout> given, const Layout& want,
           const LayoutValues& values)
      : graph_(graph), node_(graph[id]), factors_(factors), given_(given), want_(want), values_(values), over_(factors.labels.size()) {}

  LayoutDecision run() {
    for (int m = 0; m < mesh_axes(); ++m) choose(m);
    order_lists();
    LayoutDecision out;
    for (size_t k = 0; k < given_.size(); ++k) out.operands.push_back(operand_layout(k));
    pass_sums(out);
    out.result = Layout(node_.type.rank());
    for (int i = 0; i < node_.type.rank(); ++i)
      if (const int label = factors_.result[static_cast<size_t>(i)]; label >= 0) out.result.over(i) = over_[static_cast<size_t>(label)];
    combine(out);
    out.over = over_;
    return out;
  }

 private:
  int mesh_axes() const { return static_cast<int>(graph_.mesh.axes.size()); }
  const Type& type(size_t k) const { return graph_.type(node_.operands[k]); }

  // The label that mesh axis m splits, if any does. Mesh axes are decided one after the other, outermost first, so that the time grows with
  // their number and not with all combinations; where two want one label, the later one pays for its move.
  void choose(int m) {
    double least = std::numeric_limits<double>::infinity();
    int best = -1;
    const bool agreed = one_label(m);
    for (const bool yields : {false, true}) {
      if (best >= 0) break;
      for (size_t k = 0; k < given_.size(); ++k) {
        const int axis = given_[k].axis_on(m);
        if (axis < 0) continue;
        const int label = factors_.operands[k][static_cast<size_t>(axis)];
        const FactorLabel& kind = factors_.labels[static_cast<size_t>(label)];
        if (kind.kind == LabelKind::whole || kind.yields != yields || !fits(label, m)) continue;
        const double cost = agreed ? 0 : moved_bytes(m, label);
        if (cost < least || (cost == least && label < best)) least = cost, best = label;
      }
    }
    if (best < 0) best = wanted_rows(m);
    if (best >= 0) over_[static_cast<size_t>(best)].push_back(m);
  }

  // Whether all operands that m splits have it on the same label.
  bool one_label(int m) const {
    int one = -1;
    for (size_t k = 0; k < given_.size(); ++k) {
      const int axis = given_[k].axis_on(m);
      const int label = axis < 0 ? -1 : factors_.operands[k][static_cast<size_t>(axis)];
      if (label < 0 || label == one) continue;
      if (one >= 0) return false;
      one = label;
    }
    return true;
  }

  // A scatter's table is made in parts where that is what its users take.
  int wanted_rows(int m) const {
    const int axis = want_.axis_on(m);
    const int label = axis < 0 ? -1 : factors_.result[static_cast<size_t>(axis)];
    if (label < 0 || factors_.labels[static_cast<size_t>(label)].kind != LabelKind::rows) return -1;
    for (const Layout& layout : given_)
      if (layout.has(m)) return -1;
    return fits(label, m) ? label : -1;
  }

  // An axis that the mesh axis does not divide stays whole: parts of unequal sizes would need kernels of their own.
  bool fits(int label, int m) const {
    AxisList over = over_[static_cast<size_t>(label)];
    over.push_back(m);
    const auto all_fit = [&](const Type& type, const std::vector<int>& labels) {
      for (size_t i = 0; i < labels.size(); ++i)
        if (labels[i] == label && !divides_evenly(type.axes[i].size, over, graph_.mesh, values_)) return false;
      return true;
    };
    for (size_t k = 0; k < given_.size(); ++k)
      if (!all_fit(type(k), factors_.operands[k])) return false;
    for (const auto& [of, size] : factors_.sizes)
      if (of == label && !divides_evenly(size, over, graph_.mesh, values_)) return false;
    return all_fit(node_.type, factors_.result);
  }

  // What operands that m splits elsewhere send when `label` is what it splits: an operand with that label exchanges parts (all_to_all: each
  // device keeps one part of its own), another one is put together on every device (all_gather).
  double moved_bytes(int m, int label) const {
    double all = 0;
    const double parts = values_.typical(graph_.mesh.axes[static_cast<size_t>(m)].size, 2);
    for (size_t k = 0; k < given_.size(); ++k) {
      const int axis = given_[k].axis_on(m);
      if (axis < 0 || factors_.operands[k][static_cast<size_t>(axis)] == label) continue;
      const double bytes = values_.typical(local_bytes(type(k), given_[k], graph_.mesh), 1);
      const auto& labels = factors_.operands[k];
      const bool exchanged = std::find(labels.begin(), labels.end(), label) != labels.end();
      all += exchanged ? bytes * (parts - 1) / parts : bytes * (parts - 1);
    }
    return all;
  }

  // Of mesh axes that split one label the order is that of the operand which has most of them.
  void order_lists() {
    for (size_t label = 0; label < over_.size(); ++label) {
      if (over_[label].size() < 2) continue;
      AxisList longest;
      for (size_t k = 0; k < given_.size(); ++k)
        for (size_t i = 0; i < factors_.operands[k].size(); ++i)
          if (factors_.operands[k][i] == static_cast<int>(label) && given_[k].axes[i].size() > longest.size()) longest = given_[k].axes[i];
      AxisList ordered;
      for (const int m : longest)
        if (over_[label].contains(m)) ordered.push_back(m);
      for (const int m : over_[label])
        if (!ordered.contains(m)) ordered.push_back(m);
      over_[label] = ordered;
    }
  }

  Layout operand_layout(size_t k) const {
    Layout layout(type(k).rank());
    for (size_t i = 0; i < layout.axes.size(); ++i) layout.axes[i] = over_[static_cast<size_t>(factors_.operands[k][i])];
    return layout;
  }

  bool is_split(int m) const {
    return std::any_of(over_.begin(), over_.end(), [&](const AxisList& list) { return list.contains(m); });
  }
  bool is_sum(size_t k, int m) const {
    const Unreduced* partial = given_[k].partial_on(m);
    return partial != nullptr && partial->fn == ReduceFn::sum;
  }

  // Sums of operands that the op is linear in stay to be taken.
  void pass_sums(LayoutDecision& out) const {
    for (int m = 0; m < mesh_axes(); ++m) {
      if (is_split(m)) continue;
      size_t sums = 0, last = 0;
      for (size_t k = 0; k < given_.size(); ++k)
        if (is_sum(k, m)) ++sums, last = k;
      if (sums == 0) continue;
      // Scalars (terms of a norm) are added before they are summed over devices: one that is the same everywhere counts on the first alone.
      const bool together = factors_.linear[last] == Linearity::together && (sums == given_.size() || node_.type.rank() == 0);
      bool alone = factors_.linear[last] == Linearity::each && sums == 1;
      for (size_t k = 0; k < given_.size(); ++k) alone = alone && (k == last || !given_[k].has(m));
      if (!together && !alone) continue;
      for (size_t k = 0; k < given_.size(); ++k)
        if (together || is_sum(k, m)) out.operands[k].partial.push_back({m, ReduceFn::sum});
      out.passed.push_back(m);
    }
  }

  void combine(LayoutDecision& out) const {
    const bool makes = makes_table(node_.op);
    for (size_t label = 0; label < over_.size(); ++label) {
      const FactorLabel& kind = factors_.labels[label];
      if (kind.kind == LabelKind::rows) out.rows = over_[label];
      if (kind.kind == LabelKind::combine || (kind.kind == LabelKind::rows && !makes))
        for (const int m : over_[label]) out.result.partial.push_back({m, kind.fn});
    }
    for (const int m : out.passed) out.result.partial.push_back({m, ReduceFn::sum});
    std::sort(out.result.partial.begin(), out.result.partial.end(), [](const Unreduced& a, const Unreduced& b) { return a.mesh < b.mesh; });
  }

  const Graph& graph_;
  const Node& node_;
  const Factors& factors_;
  std::span<const Layout> given_;
  const Layout& want_;
  const LayoutValues& values_;
  std::vector<AxisList> over_;  // by label
};

}  // namespace

Layout scan_result_layout(const Factors& of_scan, std::span<const AxisList> over, int result) {
  const std::vector<int>& labels = of_scan.results[static_cast<size_t>(result)];
  Layout layout(static_cast<int>(labels.size()));
  for (size_t a = 0; a < labels.size(); ++a)
    if (labels[a] >= 0) layout.axes[a] = over[static_cast<size_t>(labels[a])];
  return layout;
}

bool divides_evenly(const Poly& size, const AxisList& over, const Mesh& mesh, const LayoutValues& values) {
  const auto n = values.known(size);
  if (!n) return true;
  int64_t rest = *n;
  for (const int m : over) {
    const auto count = values.known(mesh.axes[static_cast<size_t>(m)].size);
    if (!count || *count == 0) return true;
    if (rest % *count != 0) return false;
    rest /= *count;
  }
  return true;
}

LayoutDecision decide_layouts(const Graph& graph, NodeId id, const Factors& factors, std::span<const Layout> given, const Layout& want,
                              const LayoutValues& values) {
  return Deciding(graph, id, factors, given, want, values).run();
}

}  // namespace einc
