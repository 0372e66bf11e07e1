// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/locate.h"

#include <algorithm>

#include "compiler/fuse/index_split.h"

namespace einc {
namespace {

// Ops that read each operand at one index given theirs.
bool follows_index(Op op) { return op == Op::map || op == Op::reduce || op == Op::cast || (kind_of(op) == OpKind::view); }

class Locator {
 public:
  Locator(const BoundGraph& graph, const Group& group, const std::vector<bool>& member, const Kernel& kernel, KernelEvaluator& evaluator)
      : graph_(graph), member_(member), siblings_(group.siblings), kernel_(kernel), evaluator_(evaluator) {
    for (NodeId id : group.members) connect(id);
  }

  std::unordered_map<uint32_t, Indices> run(NodeId space, const Indices& at) {
    pending_.push_back({space, at});
    while (!pending_.empty()) {
      auto [id, index] = std::move(pending_.back());
      pending_.pop_back();
      if (!found_.emplace(id.index, index).second) continue;
      if (inside(id)) to_operands(id, index);
      to_users(id, index);
    }
    return std::move(found_);
  }

 private:
  struct Edge {
    NodeId user;
    size_t operand;
  };

  // Edges from what `id` reads, through views and what is made where it is read, to members.
  void connect(NodeId id) {
    if (!follows_index(graph_[id].op)) return;
    for (size_t k = 0; k < graph_[id].operands.size(); ++k) {
      const NodeId x = graph_[id].operands[k];
      auto& edges = users_[x.index];
      const bool known = std::any_of(edges.begin(), edges.end(), [&](const Edge& e) { return e.user == id && e.operand == k; });
      if (known) continue;
      edges.push_back({id, k});
      if (!member_[x.index] && inside(x)) connect(x);
    }
  }

  bool inside(NodeId id) const { return evaluator_.computes(id) || kind_of(graph_[id].op) == OpKind::view; }

  void to_operands(NodeId id, const Indices& at) {
    if (!follows_index(graph_[id].op)) return;
    for (size_t k = 0; k < graph_[id].operands.size(); ++k) {
      const NodeId x = graph_[id].operands[k];
      if (!(inside(x) || siblings_) || found_.count(x.index) > 0) continue;
      pending_.push_back({x, evaluator_.operand_index(id, k, at)});
    }
  }

  void to_users(NodeId id, const Indices& at) {
    const auto edges = users_.find(id.index);
    if (edges == users_.end()) return;
    for (const Edge& edge : edges->second) {
      if (found_.count(edge.user.index) > 0) continue;
      if (auto index = user_index(edge, at)) pending_.push_back({edge.user, std::move(*index)});
    }
  }

  std::optional<Indices> user_index(const Edge& edge, const Indices& at) {
    const Node& node = graph_[edge.user];
    const Shape& shape = graph_.shape(edge.user);
    Indices out(shape.size());
    if (node.op == Op::cast || node.op == Op::stop_gradient) return at;
    if (node.op == Op::permute) {
      const AxisList& order = node.as<PermuteAttr>().order;
      for (int i = 0; i < order.size(); ++i) out[static_cast<size_t>(i)] = at[static_cast<size_t>(order[i])];
      return out;
    }
    if (node.op == Op::map) return map_index(node, shape, edge.operand, at);
    if (node.op == Op::reduce) return reduce_index(edge.user, at);
    if (node.op == Op::merge) return merged_index(edge.user, at);
    if (node.op == Op::split) return split_index(edge.user, at);
    return std::nullopt;
  }

  // Defined when the operand has all axes of the result that are longer than 1.
  static std::optional<Indices> map_index(const Node& node, const Shape& shape, size_t operand, const Indices& at) {
    Indices out(shape.size());
    std::vector<bool> covered(shape.size(), false);
    const AxisList& map = node.as<MapAttr>().maps[operand];
    for (int i = 0; i < map.size(); ++i) {
      const auto o = static_cast<size_t>(map[i]);
      if (covered[o]) return std::nullopt;
      covered[o] = true;
      out[o] = at[static_cast<size_t>(i)];
    }
    for (size_t o = 0; o < shape.size(); ++o)
      if (!covered[o] && shape[o] != 1) return std::nullopt;
    return out;
  }

  // The reduced axes must be whole loops, which the kept ones do not use.
  std::optional<Indices> reduce_index(NodeId id, const Indices& at) {
    const AxisList& axes = graph_[id].as<ReduceAttr>().axes;
    Indices kept, reduced;
    uint64_t own = 0, used = 0;
    for (size_t i = 0; i < at.size(); ++i) {
      if (!axes.contains(static_cast<int>(i))) {
        for (const Affine::Term& t : at[i].affine.terms) used |= bit(t.axis);
        kept.push_back(at[i]);
        continue;
      }
      if (!runs_once_over(at[i], graph_.shape(graph_[id].operands[0])[i], kernel_.axes)) return std::nullopt;
      for (const Affine::Term& t : at[i].affine.terms) own |= bit(t.axis);
      reduced.push_back(at[i]);
    }
    if (own & used) return std::nullopt;
    evaluator_.set_reduced_index(id, std::move(reduced));
    return kept;
  }

  std::optional<Indices> merged_index(NodeId id, const Indices& at) {
    const AxisList& counts = graph_[id].as<MergeAttr>().counts;
    const Shape& from = graph_.shape(graph_[id].operands[0]);
    Indices out;
    size_t next = 0;
    for (int count : counts) {
      Subscript whole;
      for (int k = 0; k < count; ++k, ++next) whole = whole * from[next] + at[next];
      out.push_back(whole);
    }
    return out;
  }

  std::optional<Indices> split_index(NodeId id, const Indices& at) {
    const AxisList& counts = graph_[id].as<SplitAttr>().counts;
    const Shape& shape = graph_.shape(id);
    Indices out(shape.size());
    size_t end = 0;
    for (int i = 0; i < counts.size(); ++i) {
      const size_t begin = end;
      end += static_cast<size_t>(counts[i]);
      Subscript rest = at[static_cast<size_t>(i)];
      for (size_t o = end; o-- > begin + 1;) {
        if (shape[o] == 1) continue;
        if (!rest.dynamic.empty()) return std::nullopt;
        const auto parts = divide(rest.affine, shape[o], kernel_.axes);
        if (!parts) {
          for (const Affine::Term& t : rest.affine.terms) {
            const int64_t extent = kernel_.axes[t.axis].extent,
                          inner = t.coefficient > 0 && shape[o] % t.coefficient == 0 ? shape[o] / t.coefficient : 1;
            if (inner > 1 && inner < extent && extent % inner == 0) throw SplitNeeded{t.axis, inner};
          }
          return std::nullopt;
        }
        out[o] = parts->remainder;
        rest = parts->quotient;
      }
      if (end > begin) out[begin] = rest;
    }
    return out;
  }

  const BoundGraph& graph_;
  const std::vector<bool>& member_;
  const bool siblings_;
  const Kernel& kernel_;
  KernelEvaluator& evaluator_;
  std::unordered_map<uint32_t, std::vector<Edge>> users_;
  std::vector<std::pair<NodeId, Indices>> pending_;
  std::unordered_map<uint32_t, Indices> found_;
};

}  // namespace

std::unordered_map<uint32_t, Indices> locate_members(const BoundGraph& graph, const Group& group, const std::vector<bool>& member,
                                                     NodeId space, const Indices& at, const Kernel& kernel, KernelEvaluator& evaluator) {
  return Locator(graph, group, member, kernel, evaluator).run(space, at);
}

}  // namespace einc
