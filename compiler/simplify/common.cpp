// SPDX-License-Identifier: Apache-2.0
#include "compiler/simplify/common.h"

#include <algorithm>

#include "compiler/ir/attr_hash.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

size_t hash_of(const Node& node) {
  size_t hash = mix(static_cast<size_t>(node.op), static_cast<size_t>(node.type.dtype));
  for (NodeId operand : node.operands) hash = mix(hash, operand.index);
  hash = mix(hash, hash_of(node.attr));
  // Elsewhere operands and attributes give the sizes.
  if (node.operands.empty() || kind_of(node.op) == OpKind::view)
    for (const Axis& axis : node.type.axes) hash = mix(hash, axis.size.hash());
  return hash;
}

bool equal_nodes(const Node& a, const Node& b) {
  return a.op == b.op && a.type.dtype == b.type.dtype && a.operands == b.operands && a.origin.policy == b.origin.policy &&
         a.origin.pinned == b.origin.pinned && a.attr == b.attr && a.type.same_sizes(b.type);
}

// Summed labels numbered in the order of the left operand.
void number_summed_labels(ContractAttr& attr, int rank) {
  int next = rank;
  for (int i = 0; i < attr.left.size(); ++i) {
    if (attr.left[i] < rank) continue;
    const int j = attr.right.find(attr.left[i]);
    attr.left.set(i, kMaxRank * 2 + next);
    attr.right.set(j, kMaxRank * 2 + next);
    ++next;
  }
  for (AxisList* list : {&attr.left, &attr.right})
    for (int i = 0; i < list->size(); ++i)
      if ((*list)[i] >= kMaxRank * 2) list->set(i, (*list)[i] - kMaxRank * 2);
}

void make_canonical(Node& node) {
  if (node.op == Op::map) {
    MapAttr& attr = std::get<MapAttr>(node.attr);
    if (is_commutative(attr.fn) && node.operands[1] < node.operands[0]) {
      std::swap(node.operands[0], node.operands[1]);
      std::swap(attr.maps[0], attr.maps[1]);
    }
  } else if (node.op == Op::contract) {
    ContractAttr& attr = std::get<ContractAttr>(node.attr);
    if (node.operands[1] < node.operands[0]) {
      std::swap(node.operands[0], node.operands[1]);
      std::swap(attr.left, attr.right);
    }
    number_summed_labels(attr, node.type.rank());
  }
}

bool may_merge(const Node& node) { return node.op != Op::input && node.op != Op::param && node.op != Op::state; }

// `kept` stands for `gone` too: it belongs to the earlier phase. A label is taken from a node of the same phase only.
void absorb_origin(Node& kept, const Node& gone) {
  if (gone.origin.phase < kept.origin.phase)
    kept.origin = gone.origin;
  else if (gone.origin.phase == kept.origin.phase && kept.origin.label.empty())
    kept.origin.label = gone.origin.label;
}

// Open addressing over node indices, at most half full.
class Table {
 public:
  explicit Table(size_t count) {
    size_t size = 16;
    while (size < 2 * count) size *= 2;
    slots_.assign(size, Slot{});
  }
  // The index of an equal node seen before, or `index` itself, which is then remembered.
  uint32_t find_or_insert(const std::vector<Node>& nodes, uint32_t index) {
    const size_t hash = hash_of(nodes[index]);
    const size_t mask = slots_.size() - 1;
    for (size_t at = hash & mask;; at = (at + 1) & mask) {
      Slot& slot = slots_[at];
      if (slot.index == UINT32_MAX) return (slot = {hash, index}).index;
      if (slot.hash == hash && equal_nodes(nodes[slot.index], nodes[index])) return slot.index;
    }
  }

 private:
  struct Slot {
    size_t hash = 0;
    uint32_t index = UINT32_MAX;
  };
  std::vector<Slot> slots_;
};

}  // namespace

Merged merge_common(Graph graph) {
  Table table(graph.size());
  std::vector<NodeId> to(graph.size());
  size_t count = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    Node& node = graph.nodes[i];
    to[i] = NodeId{i};
    for (NodeId& operand : node.operands) operand = to[operand.index];
    if (!may_merge(node)) continue;
    make_canonical(node);
    to[i] = NodeId{table.find_or_insert(graph.nodes, i)};
    if (to[i].index == i) continue;
    absorb_origin(graph[to[i]], node);
    ++count;
  }
  for_each_root(graph, [&](NodeId& id) { id = to[id.index]; });
  return {std::move(graph), count};
}

}  // namespace einc
