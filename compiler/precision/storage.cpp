// SPDX-License-Identifier: Apache-2.0
#include "compiler/precision/storage.h"

#include <algorithm>
#include <optional>

namespace einc {
namespace {

// A source with what only moves or replaces its elements: they have one dtype.
class StoredAsRead {
 public:
  StoredAsRead(Graph& graph, const std::vector<std::vector<uint32_t>>& readers, NodeId source)
      : graph_(graph), readers_(readers), inside_(graph.size(), false) {
    add(source.index);
  }

  void run() {
    for (size_t k = 0; k < all_.size(); ++k)
      for (const uint32_t reader : readers_[all_[k]])
        if (!accepts(all_[k], reader)) return;
    if (!to_ || !roots_allow()) return;
    for (const uint32_t i : all_) {
      Node& node = graph_.nodes[i];
      node.type.dtype = *to_;
      node.reason = Name("stored as it is read");
      if (node.op == Op::scatter_set) give_as_stored(node);
    }
    for (const uint32_t i : all_)
      for (const uint32_t reader : readers_[i])
        if (graph_.nodes[reader].op == Op::cast) read_past(reader, i);
  }

 private:
  void add(uint32_t i) {
    if (!inside_[i]) all_.push_back(i);
    inside_[i] = true;
  }

  bool agrees(DType dtype) {
    if (dtype != DType::bf16 && dtype != DType::f16) return false;
    if (!to_) to_ = dtype;
    return *to_ == dtype;
  }

  bool accepts(uint32_t value, uint32_t reader) {
    const Node& node = graph_.nodes[reader];
    const bool moves = kind_of(node.op) == OpKind::view || node.op == Op::gather || node.op == Op::scatter_set;
    if (node.op == Op::cast) return agrees(node.type.dtype);
    if (!moves || node.origin.pinned || node.operands[0].index != value) return false;
    if (std::count(node.operands.begin(), node.operands.end(), NodeId{value}) != 1) return false;
    if (node.op == Op::scatter_set) {
      const Node& given = graph_[below_views(node.operands[1])];
      if (given.op != Op::cast || !agrees(graph_.type(given.operands[0]).dtype)) return false;
    }
    add(reader);
    return true;
  }

  // The value that views of it alone lie between here.
  NodeId below_views(NodeId id) const {
    while (kind_of(graph_[id].op) == OpKind::view && readers_[id.index].size() == 1) id = graph_[id].operands[0];
    return id;
  }

  // What a scatter writes has been cast from what is stored.
  void give_as_stored(Node& scatter) {
    NodeId* given = &scatter.operands[1];
    while (graph_[*given].op != Op::cast) {
      graph_[*given].type.dtype = *to_;
      given = &graph_[*given].operands[0];
    }
    *given = graph_[*given].operands[0];
  }

  void read_past(uint32_t cast, uint32_t value) {
    for (const uint32_t reader : readers_[cast])
      for (NodeId& x : graph_.nodes[reader].operands)
        if (x.index == cast) x.index = value;
    for (Output& output : graph_.outputs)
      if (output.node.index == cast) output.node.index = value;
  }

  bool is_inside(NodeId id) const { return id.valid() && inside_[id.index]; }

  bool roots_allow() const {
    for (const Output& output : graph_.outputs)
      if (is_inside(output.node)) return false;
    for (const Update& update : graph_.updates)
      if (is_inside(update.target) != is_inside(update.value)) return false;
    return true;
  }

  Graph& graph_;
  const std::vector<std::vector<uint32_t>>& readers_;
  std::vector<bool> inside_;
  std::vector<uint32_t> all_;
  std::optional<DType> to_;
};

}  // namespace

Graph store_as_read(Graph graph, const std::vector<NodeId>& free_to_choose) {
  std::vector<std::vector<uint32_t>> readers(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i)
    for (NodeId x : graph.nodes[i].operands)
      if (readers[x.index].empty() || readers[x.index].back() != i) readers[x.index].push_back(i);
  for (const NodeId source : free_to_choose) StoredAsRead(graph, readers, source).run();
  return graph;
}

}  // namespace einc
