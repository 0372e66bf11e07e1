// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/padded_operands.h"

#include <algorithm>
#include <cmath>

#include "compiler/fuse/library_layouts.h"
#include "runtime/base/dtype.h"

namespace einc {
namespace {

class PaddedOperands {
 public:
  PaddedOperands(const BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target)
      : graph_(graph), target_(target), readers_(graph.graph.size()), is_root_(graph.graph.size(), false) {
    for (const NodeId root : roots) is_root_[root.index] = true;
    for (uint32_t i = 0; i < graph.graph.size(); ++i)
      if (graph.live[i] && kind_of(graph.graph.nodes[i].op) != OpKind::view)
        for (NodeId x : graph.graph.nodes[i].operands) add_reader(x, NodeId{i});
  }

  // What a cast reads can be padded behind it.
  bool is_cast_of_padding(NodeId id) const {
    const Node& node = graph_[id];
    if (node.op != Op::cast || is_root_[id.index] || !is_product_of(id, node.type.dtype)) return false;
    const NodeId padding = node.operands[0];
    return is_padding_of_packs(padding, node.type.dtype) && readers_[padding.index].size() == 1 &&
           is_floating(graph_[padding].type.dtype) && !is_source(graph_[below_views(graph_[padding].operands[0])].op);
  }

  bool is_padded_where_read(NodeId id) const {
    return is_padding_of_packs(id, graph_[id].type.dtype) && is_product_of(id, graph_[id].type.dtype) &&
           graph_[below_views(graph_[id].operands[0])].op != Op::pad;
  }

 private:
  void add_reader(NodeId x, NodeId reader) {
    readers_[x.index].push_back(reader);
    if (kind_of(graph_[x].op) == OpKind::view) add_reader(graph_[x].operands[0], reader);
  }
  NodeId below_views(NodeId id) const {
    while (kind_of(graph_[id].op) == OpKind::view) id = graph_[id].operands[0];
    return id;
  }

  // Zeros, and none between elements of the 16 bytes that are copied at once.
  bool is_padding_of_packs(NodeId id, DType dtype) const {
    const Node& node = graph_[id];
    if (node.op != Op::pad || is_root_[id.index] || node.type.rank() == 0) return false;
    const double value = graph_.value(node.as<PadAttr>().value);
    const int64_t beside = graph_.shape(id).back(), width = 16 / std::max(bytes_of(dtype), 1);
    return value == 0 && !std::signbit(value) && beside == graph_.shape(node.operands[0]).back() && beside % width == 0;
  }

  // Whether all that reads it are products of that format that no library multiplies.
  bool is_product_of(NodeId id, DType dtype) const {
    const auto on_tensor_cores = [&](NodeId reader) {
      const Node& node = graph_[reader];
      if (node.op != Op::contract || suits_library(graph_, reader, target_)) return false;
      const bool alike = std::ranges::all_of(node.operands, [&](NodeId x) { return graph_[x].type.dtype == dtype; });
      const bool windows = std::ranges::any_of(node.operands, [&](NodeId x) { return has_overlapping_windows(graph_, x); });
      return alike && windows && (dtype == DType::bf16 || dtype == DType::f16 || is_in_tf32(graph_.graph, reader));
    };
    return !readers_[id.index].empty() && std::ranges::all_of(readers_[id.index], on_tensor_cores);
  }

  const BoundGraph& graph_;
  const KernelTarget& target_;
  std::vector<std::vector<NodeId>> readers_;  // through views
  std::vector<bool> is_root_;
};

}  // namespace

std::unique_ptr<const Graph> cast_before_padding(const BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target) {
  const PaddedOperands padded(graph, roots, target);
  std::unique_ptr<Graph> out;
  for (uint32_t i = 0; i < graph.graph.size(); ++i) {
    if (!graph.live[i] || !padded.is_cast_of_padding(NodeId{i})) continue;
    if (!out) out = std::make_unique<Graph>(graph.graph);
    // Each takes the place of the other.
    const Node &cast = graph.graph.nodes[i], &pad = graph.graph.nodes[cast.operands[0].index];
    Node &behind = out->nodes[i], &before = out->nodes[cast.operands[0].index];
    behind.op = pad.op, behind.attr = pad.attr;
    before.op = cast.op, before.attr = cast.attr;
    before.type = graph[before.operands[0]].type;
    before.type.dtype = behind.type.dtype;
  }
  return out;
}

void pad_where_read(BoundGraph& graph, const std::vector<NodeId>& roots, const KernelTarget& target) {
  const PaddedOperands padded(graph, roots, target);
  if (graph.where_read.empty()) graph.where_read.assign(graph.graph.size(), false);
  for (uint32_t i = 0; i < graph.graph.size(); ++i)
    if (graph.live[i] && padded.is_padded_where_read(NodeId{i})) graph.where_read[i] = true;
}

}  // namespace einc
