// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/repeated.h"

#include <algorithm>

namespace einc {

RepeatedAxes::RepeatedAxes(const Graph& graph, std::span<const Factors> factors) : graph_(graph), factors_(factors) {
  // What follows from constants and indices alone, such as a mask, kernels compute where they read it: there is nothing to save, and
  // attention recognises a mask by its form.
  std::vector<bool> given(graph.size(), false);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool source = node.op == Op::constant || node.op == Op::iota;
    const bool maps = node.op == Op::map || node.op == Op::cast || node.op == Op::broadcast;
    given[i] = source || (maps && std::ranges::all_of(node.operands, [&](NodeId x) { return given[x.index]; }));
    std::vector<bool>& axes = axes_.emplace_back(node.type.axes.size(), source || node.op == Op::random);
    for (size_t a = 0; a < axes.size() && !node.operands.empty() && !makes_table(node.op); ++a) axes[a] = repeats(NodeId{i}, a);
    of_values_.push_back(node.op == Op::random || (node.op == Op::broadcast && !given[node.operands[0].index]) ||
                         std::ranges::any_of(node.operands, [&](NodeId x) { return of_values_[x.index]; }));
  }
}

bool RepeatedAxes::repeats(NodeId id, size_t axis) const {
  const Node& node = graph_[id];
  const Factors& factors = factors_[id.index];
  const int label = factors.result[axis];
  if (label < 0) return node.op == Op::broadcast;
  // An operand that has the axis and does not repeat it is data, which devices have whole for a reason.
  if (factors.labels[static_cast<size_t>(label)].kind != LabelKind::keep) return false;
  for (size_t k = 0; k < node.operands.size(); ++k)
    for (size_t a = 0; a < factors.operands[k].size(); ++a)
      if (factors.operands[k][a] == label && !axes_[node.operands[k].index][a]) return false;
  return true;
}

bool RepeatedAxes::is_elementwise_optimizer(NodeId id) const {
  const Node& node = graph_[id];
  return node.origin.phase == Phase::optimizer && (node.op == Op::map || node.op == Op::cast);
}

bool RepeatedAxes::may_be_made_in_parts(NodeId id) const {
  return is_elementwise_optimizer(id) || (of_values_[id.index] && std::ranges::count(axes_[id.index], true) > 0);
}

std::optional<LayoutDecision> RepeatedAxes::in_parts(NodeId id, const LayoutDecision& whole, const Layout& from, const Layout& target,
                                                     const LayoutValues& values) const {
  if (from.partial != target.partial) return std::nullopt;
  // The splits that `whole` was computed with stay, such as those of an axis that is summed over: only those that `target` has besides are
  // added, on the operands' axes of the same label.
  LayoutDecision parts = whole;
  const Factors& factors = factors_[id.index];
  const auto split_more = [&](Layout& layout, NodeId of, size_t axis, int m) {
    if (layout.has(m)) return false;
    layout.axes[axis].push_back(m);
    return divides_evenly(graph_.type(of).axes[axis].size, layout.axes[axis], graph_.mesh, values);
  };
  for (size_t a = 0; a < target.axes.size(); ++a) {
    const AxisList &have = from.axes[a], &want = target.axes[a];
    if (have.size() > want.size() || !std::equal(have.begin(), have.end(), want.begin())) return std::nullopt;
    if (have.size() < want.size() && !is_elementwise_optimizer(id) && !axes_[id.index][a]) return std::nullopt;
    for (int m = have.size(); m < want.size(); ++m) {
      if (!split_more(parts.result, id, a, want[m])) return std::nullopt;
      for (size_t k = 0; k < parts.operands.size(); ++k)
        for (size_t i = 0; i < factors.operands[k].size(); ++i)
          if (factors.operands[k][i] == factors.result[a] && !split_more(parts.operands[k], graph_[id].operands[k], i, want[m]))
            return std::nullopt;
    }
  }
  return parts;
}

}  // namespace einc
