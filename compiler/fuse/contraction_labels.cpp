// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/contraction_labels.h"

#include <algorithm>

namespace einc {
namespace {

std::vector<LabelList> one_each(size_t count) {
  std::vector<LabelList> axes;
  for (size_t i = 0; i < count; ++i) axes.push_back({static_cast<int>(i)});
  return axes;
}

}  // namespace

NodeBelow below_views(const BoundGraph& graph, NodeId id) {
  NodeBelow b{id, {}};
  for (size_t i = 0; i < graph.shape(id).size(); ++i) b.axes.push_back({static_cast<int>(i)});
  for (;;) {
    const Node& node = graph[b.node];
    std::vector<LabelList> step;
    if (node.op == Op::permute) {
      for (int i : node.as<PermuteAttr>().order) step.push_back({i});
    } else if (node.op == Op::merge) {
      int next = 0;
      for (int count : node.as<MergeAttr>().counts) {
        step.emplace_back();
        for (int k = 0; k < count; ++k) step.back().push_back(next++);
      }
    } else if (node.op == Op::split && std::ranges::all_of(node.as<SplitAttr>().counts, [](int count) { return count <= 1; })) {
      int next = 0;
      for (int count : node.as<SplitAttr>().counts) {
        if (count == 1) step.push_back({next});
        ++next;
      }
    } else {
      return b;
    }
    for (LabelList& axes : b.axes) {
      LabelList now;
      for (int i : axes) now.insert(now.end(), step[static_cast<size_t>(i)].begin(), step[static_cast<size_t>(i)].end());
      axes = std::move(now);
    }
    b.node = node.operands[0];
  }
}

ContractionLabels::ContractionLabels(const BoundGraph& graph, NodeId id, NodeId result) {
  const auto& attr = graph[id].as<ContractAttr>();
  std::array<LabelList, 3> whole;
  whole[0].assign(attr.left.begin(), attr.left.end());
  whole[1].assign(attr.right.begin(), attr.right.end());
  for (size_t i = 0; i < graph.shape(id).size(); ++i) whole[2].push_back(static_cast<int>(i));
  const std::array<NodeId, 3> nodes{graph[id].operands[0], graph[id].operands[1], result};
  std::map<int, LabelList> parts;  // of labels
  std::array<std::vector<LabelList>, 3> made_of;
  for (size_t t = 0; t < 3; ++t) {
    NodeBelow below = below_views(graph, nodes[t]);
    if (!divides_alike(graph, below, whole[t], parts)) below = {nodes[t], one_each(whole[t].size())};
    for (size_t i = 0; i < whole[t].size(); ++i) {
      LabelList& made = parts[whole[t][i]];
      const LabelList& axes = below.axes[i];
      if (made.empty() || (axes.size() > 1 && made.size() == 1)) divide(graph, below.node, axes, made);
    }
    tensors[t] = below.node;
    made_of[t] = std::move(below.axes);
  }
  for (size_t t = 0; t < 3; ++t) {
    of[t].resize(graph.shape(tensors[t]).size());
    for (size_t i = 0; i < whole[t].size(); ++i) {
      const LabelList& made = parts[whole[t][i]];
      const LabelList& axes = made_of[t][i];
      for (int label : made) groups[static_cast<size_t>(label)] |= 1 << t;
      for (size_t k = 0; k < axes.size(); ++k) of[t][static_cast<size_t>(axes[k])] = axes.size() == made.size() ? LabelList{made[k]} : made;
    }
  }
}

bool ContractionLabels::is_depth(size_t tensor, size_t axis) const {
  const LabelList& list = of[tensor][axis];
  return std::all_of(list.begin(), list.end(), [&](int label) { return groups[static_cast<size_t>(label)] == kDepthLabels; });
}

int64_t ContractionLabels::count(LabelGroup group) const {
  int64_t n = 1;
  for (size_t l = 0; l < groups.size(); ++l)
    if (groups[l] == group) n *= extents[l];
  return n;
}

// Whether each label that a tensor has as several axes is one axis, or the same several ones, where it was met before.
bool ContractionLabels::divides_alike(const BoundGraph& graph, const NodeBelow& below, const LabelList& whole,
                                      const std::map<int, LabelList>& parts) const {
  for (size_t i = 0; i < whole.size(); ++i) {
    const LabelList& axes = below.axes[i];
    if (axes.empty()) return false;
    const auto known = parts.find(whole[i]);
    if (axes.size() == 1 || known == parts.end() || known->second.size() == 1) continue;
    if (known->second.size() != axes.size()) return false;
    for (size_t k = 0; k < axes.size(); ++k)
      if (extents[static_cast<size_t>(known->second[k])] != graph.shape(below.node)[static_cast<size_t>(axes[k])]) return false;
  }
  return true;
}

// A label as it has been met first, or anew where a tensor has several axes for it.
void ContractionLabels::divide(const BoundGraph& graph, NodeId node, const LabelList& axes, LabelList& made) {
  if (!made.empty()) extents[static_cast<size_t>(made[0])] = 1;
  made.clear();
  for (int axis : axes) {
    made.push_back(static_cast<int>(groups.size()));
    groups.push_back(0);
    extents.push_back(graph.shape(node)[static_cast<size_t>(axis)]);
  }
}

}  // namespace einc
