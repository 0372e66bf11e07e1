#include "compiler/fuse/library_layouts.h"

#include <algorithm>
#include <array>

#include "compiler/fuse/ordered_kernels.h"

namespace einc {
namespace {

constexpr int64_t kSmallestSide = 8;

using Order = boost::container::small_vector<int, 6>;

bool multiplies(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16; }

// Which of left, right and result have a label, as bits 1, 2 and 4.
using Group = int;
constexpr Group kRows = 1 | 4, kColumns = 2 | 4, kDepth = 1 | 2, kBatch = 7;

// The labels of a contraction's three tensors, by axis, and the group of each label.
struct Labels {
  std::array<NodeId, 3> tensors;
  std::array<std::vector<int>, 3> of;
  std::vector<Group> groups;
  std::vector<int64_t> extents;

  Labels(const BoundGraph& graph, NodeId id) : tensors{graph[id].operands[0], graph[id].operands[1], id} {
    const auto& attr = graph[id].as<ContractAttr>();
    of[0].assign(attr.left.begin(), attr.left.end());
    of[1].assign(attr.right.begin(), attr.right.end());
    for (size_t i = 0; i < graph.shape(id).size(); ++i) of[2].push_back(static_cast<int>(i));
    for (size_t t = 0; t < 3; ++t)
      for (size_t i = 0; i < of[t].size(); ++i) {
        const auto label = static_cast<size_t>(of[t][i]);
        if (groups.size() <= label) groups.resize(label + 1, 0), extents.resize(label + 1, 1);
        groups[label] |= 1 << t;
        extents[label] = graph.shape(tensors[t])[i];
      }
  }

  int64_t count(Group group) const {
    int64_t n = 1;
    for (size_t l = 0; l < groups.size(); ++l)
      if (groups[l] == group) n *= extents[l];
    return n;
  }
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
      if (const int label = labels.of[t][axis]; labels.extents[static_cast<size_t>(label)] > 1) list.push_back(label);
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
    const std::vector<int>& axes = labels.of[t];
    for (size_t i = 0; i < axes.size(); ++i)
      if (labels.extents[static_cast<size_t>(axes[i])] == 1) order.push_back(static_cast<int>(i));
    for (int label : wanted) order.push_back(static_cast<int>(std::find(axes.begin(), axes.end(), label) - axes.begin()));
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
