// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/library_layouts.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/fuse/contraction_labels.h"
#include "compiler/fuse/ordered_kernels.h"
#include "compiler/lower/library_products.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

constexpr int64_t kVector = 16, kLine = 128;  // bytes

using Order = SmallVector<int, 6>;

bool multiplies(DType dtype) { return dtype == DType::f32 || dtype == DType::f64 || dtype == DType::bf16 || dtype == DType::f16; }

class Chooser {
 public:
  Chooser(BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target)
      : graph_(graph), target_(target), decided_(graph.graph.size(), false) {
    for (NodeId id : roots) decided_[id.index] = true;
    for (const Update& u : graph.graph.updates) decided_[u.value.index] = true;
    for (uint32_t i = 0; i < graph.graph.size(); ++i) {
      const Op op = graph.graph.nodes[i].op;
      if (kind_of(op) != OpKind::compute || is_ordered(graph, NodeId{i})) decided_[i] = true;
      if (graph.live[i] && op == Op::map)
        for (NodeId x : graph.graph.nodes[i].operands)
          if (scales_product(graph, NodeId{i}, x)) scaled_.emplace(x.index, NodeId{i});
    }
  }

  // What is stored of a product.
  NodeId stored_of(NodeId product) const {
    const auto found = scaled_.find(product.index);
    return found == scaled_.end() ? product : found->second;
  }

  // Those of a batch last: attention, which needs no layout, has them.
  void run() {
    graph_.order.assign(graph_.graph.size(), {});
    for (const bool batched : {false, true}) {
      for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
        if (!graph_.live[i] || !suits_library(graph_, NodeId{i}, target_)) continue;
        const ContractionLabels labels(graph_, NodeId{i}, stored_of(NodeId{i}));
        if ((labels.count(kBatchLabels) > 1) == batched) choose(labels);
      }
      if (!batched) follow_products();
    }
  }

 private:
  // The labels of a tensor as it lies in memory, without those of one step.
  LabelList in_memory(const ContractionLabels& labels, size_t t) const {
    LabelList list;
    const NodeId id = labels.tensors[t];
    for (size_t i = 0; i < labels.of[t].size(); ++i) {
      const size_t axis = graph_.order[id.index].empty() ? i : static_cast<size_t>(graph_.order[id.index][i]);
      for (int label : labels.of[t][axis])
        if (labels.extents[static_cast<size_t>(label)] > 1) list.push_back(label);
    }
    return list;
  }

  // What is made of a product element by element lies as it does, rows along the same axis as otherwise: the product's epilogue may make
  // it.
  void follow_products() {
    for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
      const Node& node = graph_.graph.nodes[i];
      if (!graph_.live[i] || decided_[i] || node.op != Op::map) continue;
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const NodeId x = node.operands[k];
        const Order& order = graph_.order[x.index];
        if (order.empty() || order.back() + 1 != node.type.rank() || graph_[x].op != Op::contract) continue;
        if (graph_.shape(x) != graph_.shape(NodeId{i}) || !node.as<MapAttr>().maps[k].is_identity()) continue;
        graph_.order[i] = order;
        decided_[i] = true;
        break;
      }
    }
  }

  static LabelList members(const ContractionLabels& labels, const LabelList& list, LabelGroup group) {
    LabelList found;
    for (int label : list)
      if (labels.groups[static_cast<size_t>(label)] == group) found.push_back(label);
    return found;
  }

  // A group's labels as a tensor has them that lies where it lies, else as the first tensor has them.
  LabelList canonical(const ContractionLabels& labels, LabelGroup group) const {
    LabelList found;
    for (size_t t = 3; t-- > 0;)
      if (group >> t & 1 && (found.empty() || decided_[labels.tensors[t].index])) found = members(labels, in_memory(labels, t), group);
    return found;
  }

  void choose(const ContractionLabels& labels) {
    for (size_t t = 0; t < 3; ++t) {
      const NodeId id = labels.tensors[t];
      if (decided_[id.index] || !graph_.live[id.index]) continue;
      const LabelList now = in_memory(labels, t);
      const bool fp8 = is_fp8(graph_[id].type.dtype);
      const LabelGroup inner = fp8 ? kDepthLabels : now.empty() ? 0 : labels.groups[static_cast<size_t>(now.back())];
      std::vector<LabelGroup> groups;
      for (LabelGroup g : {kBatchLabels, kRowLabels, kColumnLabels, kDepthLabels, 1, 2})
        if (g >> t & 1 && g != inner) groups.push_back(g);
      if (inner != 0) groups.push_back(inner);
      LabelList wanted;
      bool several = fp8;
      for (LabelGroup g : groups) {
        const LabelList list = canonical(labels, g);
        several = several || list.size() > 1;
        wanted.insert(wanted.end(), list.begin(), list.end());
      }
      if (!several) continue;
      decided_[id.index] = true;
      if (!fits(labels, now, fp8 ? inner : 0)) reorder(labels, t, wanted);
    }
  }

  // Whether each group's labels are neighbours already, in the order that the others have, those of `inner` (if not 0) last.
  bool fits(const ContractionLabels& labels, const LabelList& now, LabelGroup inner) const {
    if (inner != 0 && (now.empty() || labels.groups[static_cast<size_t>(now.back())] != inner)) return false;
    for (LabelGroup g : {kBatchLabels, kRowLabels, kColumnLabels, kDepthLabels}) {
      const LabelList list = canonical(labels, g);
      const auto first = list.empty() ? now.end() : std::find(now.begin(), now.end(), list.front());
      if (first == now.end()) continue;
      if (static_cast<size_t>(now.end() - first) < list.size() || !std::equal(list.begin(), list.end(), first)) return false;
    }
    return true;
  }

  void reorder(const ContractionLabels& labels, size_t t, const LabelList& wanted) {
    Order order;
    const std::vector<LabelList>& axes = labels.of[t];
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
  std::vector<bool> decided_;                    // whose layout may not change any more
  std::unordered_map<uint32_t, NodeId> scaled_;  // by product, times its scale
};

}  // namespace

bool has_overlapping_windows(const BoundGraph& graph, NodeId x) {
  for (; kind_of(graph[x].op) == OpKind::view; x = graph[x].operands[0]) {
    if (graph[x].op != Op::window) continue;
    const auto& attr = graph[x].as<WindowAttr>();
    const int64_t window = graph.shape(x)[static_cast<size_t>(attr.axis) + 1];
    if (graph.value(attr.strides[0]) <= (window - 1) * graph.value(attr.strides[1])) return true;
  }
  return false;
}

bool suits_library(const BoundGraph& graph, NodeId id, const KernelTarget& target) {
  const Node& node = graph[id];
  if (!target.library || node.op != Op::contract || !multiplies(node.type.dtype)) return false;
  if (std::ranges::any_of(node.operands, [&](NodeId x) { return has_overlapping_windows(graph, x); })) return false;
  const DType left = graph[node.operands[0]].type.dtype, right = graph[node.operands[1]].type.dtype;
  if (is_fp8_product(left, right)) return suits_library_as_fp8(graph, id, target);
  if (left != right || !multiplies(left)) return false;
  const ContractionLabels labels(graph, id, id);
  return is_worth_library(labels.count(kBatchLabels), labels.count(kRowLabels), labels.count(kColumnLabels), labels.count(kDepthLabels),
                          *target.library);
}

bool suits_library_as_fp8(const BoundGraph& graph, NodeId id, const KernelTarget& target) {
  if (!target.library || !multiplies(graph[id].type.dtype)) return false;
  const ContractionLabels labels(graph, id, id);
  const int64_t rows = labels.count(kRowLabels), columns = labels.count(kColumnLabels), depth = labels.count(kDepthLabels);
  if (rows % kFp8Step != 0 || columns % kFp8Step != 0 || depth % kFp8Step != 0) return false;
  return is_worth_library(labels.count(kBatchLabels), rows, columns, depth, *target.library);
}

bool scales_product(const BoundGraph& graph, NodeId id, NodeId product) {
  const Node &node = graph[id], &contraction = graph[product];
  if (node.op != Op::map || node.as<MapAttr>().fn != MapFn::mul || contraction.op != Op::contract) return false;
  if (!is_fp8(graph[contraction.operands[0]].type.dtype) || contraction.type.dtype != DType::f32) return false;
  for (size_t k : {0, 1})
    if (node.operands[k] == product && graph.shape(node.operands[1 - k]).empty() && node.as<MapAttr>().maps[k].is_identity())
      return graph[node.operands[1 - k]].type.dtype == DType::f32;
  return false;
}

bool sums_operand(const BoundGraph& graph, NodeId id, NodeId product, const KernelTarget& target) {
  const Node& node = graph[id];
  if (node.op != Op::reduce || node.as<ReduceAttr>().fn != ReduceFn::sum || graph[product].type.dtype != node.type.dtype) return false;
  const NodeId x = node.operands[0];
  if (is_fp8(graph[x].type.dtype) || !suits_library(graph, product, target)) return false;
  const ContractionLabels labels(graph, product, product);
  for (size_t t : {0, 1}) {
    if (labels.tensors[t] != x) continue;
    bool alike = true;
    for (size_t i = 0; i < labels.of[t].size(); ++i)
      alike = alike && (graph.shape(x)[i] == 1 || labels.is_depth(t, i) == node.as<ReduceAttr>().axes.contains(static_cast<int>(i)));
    if (alike) return true;
  }
  return false;
}

void choose_layouts(BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target) {
  if (target.library) Chooser(graph, roots, target).run();
}

namespace {

// Whether an axis is all the loops of its group: others would have to follow it without a gap.
bool is_alone(const ContractionLabels& labels, const LabelList& axis) {
  if (axis.size() != 1) return false;
  const LabelGroup group = labels.groups[static_cast<size_t>(axis[0])];
  return labels.count(group) == labels.extents[static_cast<size_t>(axis[0])];
}

}  // namespace

void pad_rows(BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target) {
  graph.padding.assign(graph.graph.size(), 0);
  if (!target.library) return;
  std::vector<bool> is_root(graph.graph.size(), false);
  for (const NodeId id : roots) is_root[id.index] = true;
  for (uint32_t i = 0; i < graph.graph.size(); ++i) {
    if (!graph.live[i] || !suits_library(graph, NodeId{i}, target)) continue;
    const ContractionLabels labels(graph, NodeId{i}, NodeId{i});
    for (size_t t = 0; t < 3; ++t) {
      const NodeId id = labels.tensors[t];
      const Node& node = graph[id];
      const Shape& shape = graph.shape(id);
      const bool between = (node.op == Op::map || node.op == Op::cast || node.op == Op::contract) && !is_root[id.index];
      if (!between || shape.size() < 2 || (!graph.order.empty() && !graph.order[id.index].empty())) continue;
      const int64_t size = bytes_of(node.type.dtype), row = shape.back() * size;
      if (row % kVector == 0 || row < target.library->padded_row || !is_alone(labels, labels.of[t].back())) continue;
      graph.padding[id.index] = (kLine - row % kLine) / size;
    }
  }
}

}  // namespace einc
