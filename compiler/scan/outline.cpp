// SPDX-License-Identifier: Apache-2.0
// The body of `scan` is elaborated like any statements, into the graph around it, with marks for the carries and the index. Then every node
// that follows from a mark or a draw is moved into a body, and whatever else was made on the way stays outside: loop-invariant code moves
// out by never moving in.
#include "compiler/scan/outline.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/scan.h"
#include "compiler/scan/body_builder.h"
#include "compiler/scan/hoist_products.h"

namespace einc {
namespace {

bool draws(Op op) { return op == Op::random || op == Op::dropout; }

class Outliner {
 public:
  Outliner(Builder& build, const ScanDraft& draft) : build_(build), graph_(build.graph()), draft_(draft), end_(graph_.size()) {}

  OutlinedScan run() {
    for (size_t b = 0; b < draft_.blocks.size(); ++b)
      for (const NodeId result : draft_.blocks[b].results) block_of_.emplace(result.index, b);
    find_members();
    find_needed();
    BodyBuilder body(build_, draft_.axis, draft_.direction, draft_.save_every);
    for (const ScanCarry& c : draft_.carries) to_[c.mark.index] = body.carry(c.initial);
    for (uint32_t i = draft_.first; i < end_; ++i)
      if (needed_[i] && !is_mark(NodeId{i})) to_[i] = move(body, NodeId{i});
    for (size_t c = 0; c < draft_.carries.size(); ++c) body.set_next(c, read(body, draft_.carries[c].next));
    for (const NodeId value : draft_.collected) body.collect(read(body, value));
    const std::vector<NodeId> given = keep_blocks(body);
    clear_members();
    hoist_products(build_, body, given);
    return {body.finish(), body.shared(), std::move(to_)};
  }

 private:
  // What their blocks read outside becomes known in the body, too.
  std::vector<NodeId> keep_blocks(BodyBuilder& body) {
    std::vector<NodeId> given;
    for (const ScanBlock& block : draft_.blocks) {
      if (!moves(block)) continue;
      for (const auto* nodes : {&block.results, &block.placeholders, &block.inputs, &block.gradients})
        for (const NodeId id : *nodes) {
          const NodeId moved = read(body, id);
          to_.emplace(id.index, moved);
          body.keep(moved);
        }
      for (const NodeId placeholder : block.placeholders) given.push_back(to_.at(placeholder.index));
    }
    return given;
  }
  bool moves(const ScanBlock& block) const { return inside(block.results.front()) && needed_[block.results.front().index]; }

  // Whether it belongs to an iteration.
  bool inside(NodeId id) const { return id.index >= draft_.first && member_[id.index]; }
  bool is_mark(NodeId id) const {
    if (id == draft_.index) return true;
    for (const ScanCarry& c : draft_.carries)
      if (c.mark == id) return true;
    return false;
  }

  // Operands precede users, so one pass finds all that follows from a mark. A draw is anew in each iteration, whatever it reads.
  void find_members() {
    member_.assign(end_, false);
    std::unordered_map<uint32_t, size_t> placeholders;
    for (size_t b = 0; b < draft_.blocks.size(); ++b)
      for (const NodeId id : draft_.blocks[b].placeholders) placeholders.emplace(id.index, b);
    for (uint32_t i = draft_.first; i < end_; ++i) {
      const Node& node = graph_.nodes[i];
      member_[i] = is_mark(NodeId{i}) || draws(node.op);
      if (const auto block = placeholders.find(i); block != placeholders.end()) member_[i] = varies(draft_.blocks[block->second]);
      if (node.op == Op::scan)
        for (const Node& n : node.as<ScanAttr>().body->nodes) member_[i] = member_[i] || draws(n.op);
      for (NodeId x : node.operands) member_[i] = member_[i] || inside(x);
      if (const auto block = block_of_.find(i); block != block_of_.end()) member_[i] = varies(draft_.blocks[block->second]);
    }
  }
  // Whether what the call computes is in the body: it stands in front of placeholders and results.
  bool varies(const ScanBlock& block) const {
    return std::ranges::any_of(block.results, [&](NodeId result) { return inside(graph_[result].operands[0]); });
  }

  // From behind: a member that no carry and no collected value reads is not moved.
  void find_needed() {
    needed_.assign(end_, false);
    for (const ScanCarry& c : draft_.carries) needed_[c.next.index] = inside(c.next);
    for (NodeId value : draft_.collected) needed_[value.index] = inside(value);
    for (uint32_t i = end_; i-- > draft_.first;) {
      need_with_block(i);
      if (needed_[i])
        for (NodeId x : graph_.nodes[i].operands) needed_[x.index] = needed_[x.index] || inside(x);
    }
  }

  // Results of a call stand side by side: what reads one of them stands behind all.
  void need_with_block(uint32_t i) {
    const auto found = block_of_.find(i);
    if (found == block_of_.end() || !inside(NodeId{i})) return;
    const ScanBlock& block = draft_.blocks[found->second];
    for (const NodeId result : block.results) needed_[i] = needed_[i] || needed_[result.index];
    if (!needed_[i]) return;
    for (const auto* nodes : {&block.placeholders, &block.inputs, &block.gradients})
      for (const NodeId id : *nodes) needed_[id.index] = needed_[id.index] || inside(id);
  }

  NodeId read(BodyBuilder& body, NodeId x) {
    if (x == draft_.index) return body.index();
    if (inside(x)) return to_.at(x.index);
    return body.outside(x);
  }

  // x[axis = index] of a value outside reads a slice: its place is known before the iteration runs.
  NodeId move(BodyBuilder& body, NodeId id) {
    Node node = graph_[id];
    if (node.op == Op::gather && node.operands[1] == draft_.index && !inside(node.operands[0])) {
      const GatherAttr& attr = node.as<GatherAttr>();
      AxisList order;
      for (int k = 0; k < attr.table_map.size(); ++k)
        if (k != attr.axis) order.push_back(attr.table_map[k]);
      if (order.is_identity() && graph_.type(node.operands[0]).axis(attr.axis).size == draft_.axis.size)
        return body.slice(node.operands[0], attr.axis, node.origin);
    }
    for (NodeId& x : node.operands) x = read(body, x);
    return body.append(std::move(node));
  }

  void clear_members() {
    for (uint32_t i = draft_.first; i < end_; ++i)
      if (member_[i]) clear_node(graph_.nodes[i]);
  }

  Builder& build_;
  Graph& graph_;
  const ScanDraft& draft_;
  const uint32_t end_;
  std::vector<bool> member_, needed_;
  std::unordered_map<uint32_t, NodeId> to_;        // nodes of the body
  std::unordered_map<uint32_t, size_t> block_of_;  // of results
};

}  // namespace

OutlinedScan outline_scan(Builder& build, const ScanDraft& draft) { return Outliner(build, draft).run(); }

}  // namespace einc
