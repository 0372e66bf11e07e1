#include "compiler/fuse/library_layouts.h"

#include <algorithm>
#include <array>
#include <map>

#include "compiler/fuse/ordered_kernels.h"

namespace einc {
namespace {

constexpr int64_t kSmallestSide = 8;

using Order = boost::container::small_vector<int, 6>;

bool multiplies(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16; }

// Which of left, right and result have a label, as bits 1, 2 and 4.
using Group = int;
constexpr Group kRows = 1 | 4, kColumns = 2 | 4, kDepth = 1 | 2, kBatch = 7;

// What a node reads through permutes and merges: the node below them, and of each axis the axes there that it is made of.
struct Below {
  NodeId node;
  std::vector<std::vector<int>> axes;
};

Below below_views(const BoundGraph& graph, NodeId id) {
  Below b{id, {}};
  for (size_t i = 0; i < graph.shape(id).size(); ++i) b.axes.push_back({static_cast<int>(i)});
  for (;;) {
    const Node& node = graph[b.node];
    std::vector<std::vector<int>> step;
    if (node.op == Op::permute) {
      for (int i : node.as<PermuteAttr>().order) step.push_back({i});
    } else if (node.op == Op::merge) {
      int next = 0;
      for (int count : node.as<MergeAttr>().counts) {
        step.emplace_back();
        for (int k = 0; k < count; ++k) step.back().push_back(next++);
      }
    } else {
      return b;
    }
    for (std::vector<int>& axes : b.axes) {
      std::vector<int> now;
      for (int i : axes) now.insert(now.end(), step[static_cast<size_t>(i)].begin(), step[static_cast<size_t>(i)].end());
      axes = std::move(now);
    }
    b.node = node.operands[0];
  }
}

// The labels of a contraction's three tensors; a label that one of them has as several axes is several labels.
struct Labels {
  std::array<NodeId, 3> tensors;
  std::array<std::vector<std::vector<int>>, 3> of;  // by axis
  std::vector<Group> groups;
  std::vector<int64_t> extents;

  Labels(const BoundGraph& graph, NodeId id) {
    const auto& attr = graph[id].as<ContractAttr>();
    std::array<std::vector<int>, 3> whole;
    whole[0].assign(attr.left.begin(), attr.left.end());
    whole[1].assign(attr.right.begin(), attr.right.end());
    for (size_t i = 0; i < graph.shape(id).size(); ++i) whole[2].push_back(static_cast<int>(i));
    const std::array<NodeId, 3> nodes{graph[id].operands[0], graph[id].operands[1], id};
    std::map<int, std::vector<int>> parts;  // of labels
    for (size_t t = 0; t < 3; ++t) {
      Below below = below_views(graph, nodes[t]);
      if (!divides_alike(graph, below, whole[t], parts)) below = {nodes[t], one_each(whole[t].size())};
      for (size_t i = 0; i < whole[t].size(); ++i) {
        std::vector<int>& made = parts[whole[t][i]];
        const std::vector<int>& axes = below.axes[i];
        if (made.empty() || (axes.size() > 1 && made.size() == 1)) divide(graph, below.node, axes, made);
      }
      tensors[t] = below.node;
      below_[t] = std::move(below.axes);
    }
    for (size_t t = 0; t < 3; ++t) {
      of[t].resize(graph.shape(tensors[t]).size());
      for (size_t i = 0; i < whole[t].size(); ++i) {
        const std::vector<int>& made = parts[whole[t][i]];
        const std::vector<int>& axes = below_[t][i];
        for (int label : made) groups[static_cast<size_t>(label)] |= 1 << t;
        for (size_t k = 0; k < axes.size(); ++k)
          of[t][static_cast<size_t>(axes[k])] = axes.size() == made.size() ? std::vector<int>{made[k]} : made;
      }
    }
  }

  int64_t count(Group group) const {
    int64_t n = 1;
    for (size_t l = 0; l < groups.size(); ++l)
      if (groups[l] == group) n *= extents[l];
    return n;
  }

 private:
  static std::vector<std::vector<int>> one_each(size_t count) {
    std::vector<std::vector<int>> axes;
    for (size_t i = 0; i < count; ++i) axes.push_back({static_cast<int>(i)});
    return axes;
  }

  // Whether each label that a tensor has as several axes is one axis, or the same several ones, where it was met before.
  bool divides_alike(const BoundGraph& graph, const Below& below, const std::vector<int>& whole,
                     const std::map<int, std::vector<int>>& parts) const {
    for (size_t i = 0; i < whole.size(); ++i) {
      const std::vector<int>& axes = below.axes[i];
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
  void divide(const BoundGraph& graph, NodeId node, const std::vector<int>& axes, std::vector<int>& made) {
    if (!made.empty()) extents[static_cast<size_t>(made[0])] = 1;
    made.clear();
    for (int axis : axes) {
      made.push_back(static_cast<int>(groups.size()));
      groups.push_back(0);
      extents.push_back(graph.shape(node)[static_cast<size_t>(axis)]);
    }
  }

  std::array<std::vector<std::vector<int>>, 3> below_;
};

class Chooser {
 public:
  Chooser(BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target)
      : graph_(graph), target_(target), decided_(graph.graph.size(), false) {
    for (NodeId id : roots) decided_[id.index] = true;
    for (const Update& u : graph.graph.updates) decided_[u.value.index] = true;
    for (uint32_t i = 0; i < graph.graph.size(); ++i) {
      const Op op = graph.graph.nodes[i].op;
      if (kind_of(op) != OpKind::compute || is_ordered(op)) decided_[i] = true;
    }
  }

  // Those of a batch last: attention, which needs no layout, has them.
  void run() {
    graph_.order.assign(graph_.graph.size(), {});
    for (const bool batched : {false, true})
      for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
        if (!graph_.live[i] || !suits_library(graph_, NodeId{i}, target_)) continue;
        const Labels labels(graph_, NodeId{i});
        if ((labels.count(kBatch) > 1) == batched) choose(labels);
      }
  }

 private:
  // The labels of a tensor as it lies in memory, without those of one step.
  std::vector<int> in_memory(const Labels& labels, size_t t) const {
    std::vector<int> list;
    const NodeId id = labels.tensors[t];
    for (size_t i = 0; i < labels.of[t].size(); ++i) {
      const size_t axis = graph_.order[id.index].empty() ? i : static_cast<size_t>(graph_.order[id.index][i]);
      for (int label : labels.of[t][axis])
        if (labels.extents[static_cast<size_t>(label)] > 1) list.push_back(label);
    }
    return list;
  }

  static std::vector<int> members(const Labels& labels, const std::vector<int>& list, Group group) {
    std::vector<int> found;
    for (int label : list)
      if (labels.groups[static_cast<size_t>(label)] == group) found.push_back(label);
    return found;
  }

  // A group's labels as a tensor has them that lies where it lies, else as the first tensor has them.
  std::vector<int> canonical(const Labels& labels, Group group) const {
    std::vector<int> found;
    for (size_t t = 3; t-- > 0;)
      if (group >> t & 1 && (found.empty() || decided_[labels.tensors[t].index])) found = members(labels, in_memory(labels, t), group);
    return found;
  }

  void choose(const Labels& labels) {
    for (size_t t = 0; t < 3; ++t) {
      const NodeId id = labels.tensors[t];
      if (decided_[id.index] || !graph_.live[id.index]) continue;
      const std::vector<int> now = in_memory(labels, t);
      const Group inner = now.empty() ? 0 : labels.groups[static_cast<size_t>(now.back())];
      std::vector<Group> groups;
      for (Group g : {kBatch, kRows, kColumns, kDepth, 1, 2})
        if (g >> t & 1 && g != inner) groups.push_back(g);
      if (inner != 0) groups.push_back(inner);
      std::vector<int> wanted;
      bool several = false;
      for (Group g : groups) {
        const std::vector<int> list = canonical(labels, g);
        several = several || list.size() > 1;
        wanted.insert(wanted.end(), list.begin(), list.end());
      }
      if (!several) continue;
      decided_[id.index] = true;
      if (!fits(labels, now)) reorder(labels, t, wanted);
    }
  }

  // Whether each group's labels are neighbours already, in the order that the others have.
  bool fits(const Labels& labels, const std::vector<int>& now) const {
    for (Group g : {kBatch, kRows, kColumns, kDepth}) {
      const std::vector<int> list = canonical(labels, g);
      const auto first = list.empty() ? now.end() : std::find(now.begin(), now.end(), list.front());
      if (first == now.end()) continue;
      if (static_cast<size_t>(now.end() - first) < list.size() || !std::equal(list.begin(), list.end(), first)) return false;
    }
    return true;
  }

  void reorder(const Labels& labels, size_t t, const std::vector<int>& wanted) {
    Order order;
    const std::vector<std::vector<int>>& axes = labels.of[t];
    const auto add = [&](size_t axis) {
      if (std::find(order.begin(), order.end(), static_cast<int>(axis)) == order.end()) order.push_back(static_cast<int>(axis));
    };
    for (size_t i = 0; i < axes.size(); ++i)
      if (std::all_of(axes[i].begin(), axes[i].end(), [&](int l) { return labels.extents[static_cast<size_t>(l)] == 1; })) add(i);
    for (int label : wanted)
      for (size_t i = 0; i < axes.size(); ++i)
        if (std::find(axes[i].begin(), axes[i].end(), label) != axes[i].end()) add(i);
    if (order.size() == axes.size()) graph_.order[labels.tensors[t].index] = std::move(order);
  }

  BoundGraph& graph_;
  const KernelTarget& target_;
  std::vector<bool> decided_;  // whose layout may not change any more
};

}  // namespace

bool suits_library(const BoundGraph& graph, NodeId id, const KernelTarget& target) {
  const Node& node = graph[id];
  if (!target.library_products || node.op != Op::contract || !multiplies(node.type.dtype)) return false;
  const DType left = graph[node.operands[0]].type.dtype;
  if (left != graph[node.operands[1]].type.dtype || !multiplies(left)) return false;
  const Labels labels(graph, id);
  const int64_t rows = labels.count(kRows), columns = labels.count(kColumns), depth = labels.count(kDepth);
  return std::min({rows, columns, depth}) >= kSmallestSide && labels.count(kBatch) * rows * columns * depth >= *target.library_products;
}

void choose_layouts(BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target) {
  if (target.library_products) Chooser(graph, roots, target).run();
}

}  // namespace einc
