// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/pattern_lower.h"

#include <algorithm>

namespace einc {

namespace {

int position(const std::vector<int>& labels, int label) {
  const auto it = std::find(labels.begin(), labels.end(), label);
  return it == labels.end() ? -1 : static_cast<int>(it - labels.begin());
}

NodeId split_groups(Builder& build, const SolvedPattern& pattern, const OperandLayout& layout, NodeId x) {
  if (std::all_of(layout.counts.begin(), layout.counts.end(), [](int n) { return n == 1; })) return x;
  AxisList counts;
  for (const int n : layout.counts) counts.push_back(n);
  std::vector<Axis> axes;
  for (const PatternLeaf& leaf : layout.leaves)
    axes.push_back(leaf.is_window() ? Axis{Name(leaf.text), leaf.size} : pattern.axis(leaf.labels[0]));
  return build.split(x, counts, std::move(axes));
}

LabelledTensor take_diagonals(Builder& build, NodeId x, const std::vector<int>& labels) {
  LabelledTensor result{x, {}};
  AxisList map;
  for (const int label : labels) {
    if (!result.has(label)) result.labels.push_back(label);
    map.push_back(position(result.labels, label));
  }
  if (result.labels.size() != labels.size()) result.node = build.diagonal(x, map);
  return result;
}

}  // namespace

bool LabelledTensor::has(int label) const { return position(labels, label) >= 0; }

std::vector<int> LabelledTensor::labels_in(const std::vector<int>& kept) const {
  std::vector<int> found;
  for (const int label : labels)
    if (position(kept, label) >= 0) found.push_back(label);
  return found;
}

AxisList LabelledTensor::axes_without(const std::vector<int>& kept) const {
  AxisList axes;
  for (size_t i = 0; i < labels.size(); ++i)
    if (position(kept, labels[i]) < 0) axes.push_back(static_cast<int>(i));
  return axes;
}

LabelledTensor open_operand(Builder& build, const SolvedPattern& pattern, size_t operand, NodeId x) {
  const OperandLayout& layout = pattern.operands[operand];
  NodeId node = split_groups(build, pattern, layout, x);
  std::vector<int> labels;
  for (const PatternLeaf& leaf : layout.leaves) {
    if (leaf.is_window()) {
      std::vector<Axis> axes;
      for (const int label : leaf.labels) axes.push_back(pattern.axis(label));
      node = build.window(node, static_cast<int>(labels.size()), leaf.strides, std::move(axes));
    }
    labels.insert(labels.end(), leaf.labels.begin(), leaf.labels.end());
  }
  return take_diagonals(build, node, labels);
}

NodeId close_output(Builder& build, const SolvedPattern& pattern, const LabelledTensor& x, uint32_t first_own) {
  const std::vector<int> target = pattern.output_labels();
  NodeId node = x.node;
  AxisList order, map;
  std::vector<Axis> spread;
  for (size_t i = 0; i < target.size(); ++i) {
    const int from = position(x.labels, target[i]);
    spread.push_back(pattern.axis(target[i]));
    if (from < 0) continue;
    order.push_back(from);
    map.push_back(static_cast<int>(i));
  }
  if (!order.is_identity()) node = build.permute(node, order);
  if (map.size() != static_cast<int>(target.size())) node = build.broadcast(node, map, std::move(spread));

  for (size_t i = 0; const OutputAxis& axis : pattern.output) {
    if (axis.is_window()) node = build.fold(node, static_cast<int>(i), axis.strides, pattern.output_axis(axis));
    i += axis.is_window() ? 1 : axis.labels.size();
  }

  AxisList counts;
  std::vector<Axis> axes;
  bool merges = false;
  for (const OutputAxis& axis : pattern.output) {
    counts.push_back(axis.is_window() ? 1 : static_cast<int>(axis.labels.size()));
    axes.push_back(pattern.output_axis(axis));
    merges = merges || counts[counts.size() - 1] != 1;
  }
  if (merges) return build.merge(node, counts, std::move(axes));
  if (node.index < first_own) return build.rename(node, std::move(axes));
  build.graph()[node].type.axes = std::move(axes);
  return node;
}

}  // namespace einc
