// The body of `scan` is elaborated like any statements, into the graph around it, with marks for the carries and the index. Then every node
// that follows from a mark or a draw is moved into a body, and whatever else was made on the way stays outside: loop-invariant code moves
// out by never moving in. `save every k` makes two scans, of pieces and within a piece: the backward of the outer one keeps the carries at
// the pieces' ends only and runs the inner one again (Chen et al. 2016, Training Deep Nets with Sublinear Memory Cost).
#include "compiler/scan/outline.h"

#include <map>
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

  std::vector<NodeId> run() {
    find_members();
    find_needed();
    if (draft_.save_every && leaves_room()) pieces_.emplace(build_, Axis{Name(), divide(draft_.axis.size, piece())}, draft_.direction);
    BodyBuilder body(pieces_ ? pieces_->body() : build_, Axis{draft_.axis.name, pieces_ ? piece() : draft_.axis.size}, draft_.direction,
                     pieces_.has_value());
    for (const ScanCarry& c : draft_.carries) to_[c.mark.index] = body.carry(pieces_ ? pieces_->carry(c.initial) : c.initial);
    for (uint32_t i = draft_.first; i < end_; ++i)
      if (needed_[i] && !is_mark(NodeId{i})) to_[i] = move(body, NodeId{i});
    for (size_t c = 0; c < draft_.carries.size(); ++c) body.set_next(c, read(body, draft_.carries[c].next));
    for (const NodeId value : draft_.collected) body.collect(read(body, value));
    clear_members();
    hoist_products(pieces_ ? pieces_->body() : build_, body);
    return pieces_ ? finish_pieces(body.finish()) : body.finish();
  }

 private:
  const Poly& piece() const { return *draft_.save_every; }

  // A value outside is cut into pieces along one more axis, and the scan of pieces stacks what a piece collects along another. Without room
  // for both in a type, all iterations are kept: `save every` asks for less memory, never for other values.
  bool leaves_room() const {
    for (uint32_t i = draft_.first; i < end_; ++i)
      if (member_[i] && (graph_.nodes[i].type.rank() + 2 > kMaxRank || reads_large(graph_.nodes[i]))) return false;
    return true;
  }
  bool reads_large(const Node& node) const {
    for (NodeId x : node.operands)
      if (graph_.type(x).rank() == kMaxRank) return true;
    return false;
  }

  std::vector<NodeId> finish_pieces(const std::vector<NodeId>& results) {
    for (size_t r = 0; r < results.size(); ++r) r < draft_.carries.size() ? pieces_->set_next(r, results[r]) : pieces_->collect(results[r]);
    std::vector<NodeId> whole = pieces_->finish();
    for (size_t r = draft_.carries.size(); r < whole.size(); ++r) {
      const Type& type = build_.type(whole[r]);
      std::vector<Axis> axes{draft_.axis};
      for (int i = 2; i < type.rank(); ++i) axes.push_back(type.axis(i));
      whole[r] = build_.merge(whole[r], first_is_two(type.rank() - 1), axes);
    }
    return whole;
  }

  static AxisList first_is_two(int rank) {
    AxisList counts{2};
    for (int i = 1; i < rank; ++i) counts.push_back(1);
    return counts;
  }

  // Of an axis of a value outside: an iteration's element. Two reads of one value share what cuts it, so that its gradient is added up
  // once.
  NodeId slice(BodyBuilder& body, NodeId x, int axis, const Origin& origin) {
    if (!pieces_) return body.slice(x, axis, origin);
    const auto known = slices_.find({x.index, axis});
    if (known != slices_.end()) return known->second;
    std::vector<Axis> axes{pieces_->axis(), body.axis()};
    AxisList order{axis};
    for (int i = 0; i < graph_.type(x).rank(); ++i)
      if (i != axis) order.push_back(i), axes.push_back(graph_.type(x).axis(i));
    const NodeId front = order.is_identity() ? x : build_.permute(x, order);
    const NodeId stacked = build_.split(front, first_is_two(static_cast<int>(axes.size()) - 1), axes);
    const NodeId sliced = body.slice(pieces_->slice(stacked, origin), origin);
    slices_.emplace(std::pair(x.index, axis), sliced);
    return sliced;
  }

  // Of the whole scan: the inner scan's own index begins anew in each piece.
  NodeId index(BodyBuilder& body) {
    if (!pieces_) return body.index();
    if (!count_.valid()) count_ = slice(body, build_.iota(draft_.axis), 0, build_.origin);
    return count_;
  }

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
    for (uint32_t i = draft_.first; i < end_; ++i) {
      const Node& node = graph_.nodes[i];
      member_[i] = is_mark(NodeId{i}) || draws(node.op);
      if (node.op == Op::scan)
        for (const Node& n : node.as<ScanAttr>().body->nodes) member_[i] = member_[i] || draws(n.op);
      for (NodeId x : node.operands) member_[i] = member_[i] || inside(x);
    }
  }

  // From behind: a member that no carry and no collected value reads is not moved.
  void find_needed() {
    needed_.assign(end_, false);
    for (const ScanCarry& c : draft_.carries) needed_[c.next.index] = inside(c.next);
    for (NodeId value : draft_.collected) needed_[value.index] = inside(value);
    for (uint32_t i = end_; i-- > draft_.first;)
      if (needed_[i])
        for (NodeId x : graph_.nodes[i].operands) needed_[x.index] = needed_[x.index] || inside(x);
  }

  NodeId read(BodyBuilder& body, NodeId x) {
    if (x == draft_.index) return index(body);
    if (inside(x)) return to_.at(x.index);
    return body.outside(pieces_ ? pieces_->outside(x) : x);
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
        return slice(body, node.operands[0], attr.axis, node.origin);
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
  std::unordered_map<uint32_t, NodeId> to_;  // nodes of the body
  std::optional<BodyBuilder> pieces_;        // the scan of pieces, where there are such
  std::map<std::pair<uint32_t, int>, NodeId> slices_;
  NodeId count_;
};

}  // namespace

std::vector<NodeId> outline_scan(Builder& build, const ScanDraft& draft) { return Outliner(build, draft).run(); }

}  // namespace einc
