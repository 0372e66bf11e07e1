// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/find_attention.h"

#include <algorithm>
#include <optional>

#include "compiler/fuse/drawn_parts.h"
#include "compiler/fuse/reader_lists.h"

namespace einc {
namespace {

constexpr size_t kMostNodes = 200;

bool is_elementwise(Op op) { return op == Op::map || op == Op::cast || op == Op::stop_gradient; }

class Finder {
 public:
  Finder(const BoundGraph& graph, const std::vector<bool>& roots, const std::vector<bool>& free, const ReaderLists& users)
      : graph_(graph), roots_(roots), free_(free), users_(users) {}

  // The attention around the scores `id`, when it is one.
  std::optional<FoundAttention> run(NodeId id) {
    found_.scores = id;
    alone_ = graph_[id].origin.phase == Phase::backward;
    std::vector<int> own;
    for (size_t i = 0; i < graph_.shape(id).size(); ++i) own.push_back(static_cast<int>(i));
    if (!(alone_ ? find_key_of_row(id, own) : find_key(id, own))) return std::nullopt;
    add(id, own);
    do {
      while (!pending_.empty() && found_.axes.size() < kMostNodes) {
        const NodeId next = pending_.back();
        pending_.pop_back();
        visit(next);
      }
    } while (found_.axes.size() < kMostNodes && add_kept_rows());
    if (!pending_.empty()) refuse(id, "it holds too many nodes");
    if (!looks_like_attention()) return std::nullopt;
    if (alone_ && !found_.is_lone_backward()) refuse(id, "its backward shares values per row and key with the forward");
    if (!refusal_) close_paths(found_.forward, Phase::forward);
    if (!refusal_) close_paths(found_.backward, Phase::backward);
    if (refusal_) return std::nullopt;
    sort_all();
    return std::move(found_);
  }

  // Why what looks like attention is none.
  const std::optional<FusionRefusal>& refusal() const { return refusal_; }
  bool looks_like_attention() const { return has_softmax_ && mixes_ && (!alone_ || has_weight_gradient()); }

 private:
  void refuse(NodeId at, const char* reason) {
    if (!refusal_) refusal_ = FusionRefusal{found_.scores, at, reason};
  }

  // Of what is made of the scores the first that `look` answers for, given the scores' axes along those of what it reads.
  bool walk_users(NodeId id, const std::vector<int>& own, const auto& look) {
    constexpr size_t kMostLookedAt = 32;  // a softmax is a mask, a scale and a bias away
    std::vector<std::pair<NodeId, std::vector<int>>> pending{{id, own}};
    for (size_t k = 0; k < pending.size() && k < kMostLookedAt; ++k) {
      const auto [node, axes] = pending[k];
      for (NodeId user : users_[node]) {
        if (const std::optional<bool> answer = look(user, node, axes)) return *answer;
        if (auto there = axes_of_user(user, node, axes)) pending.push_back({user, std::move(*there)});
      }
    }
    return false;
  }

  // The axis that the first fold among the users takes away, if one of a single operand of the scores.
  bool find_key(NodeId id, const std::vector<int>& own) {
    return walk_users(id, own, [&](NodeId user, NodeId, const std::vector<int>& axes) -> std::optional<bool> {
      if (graph_[user].op != Op::reduce) return std::nullopt;
      const AxisList& over = graph_[user].as<ReduceAttr>().axes;
      if (over.size() != 1) return std::nullopt;
      const int axis = axes[static_cast<size_t>(over[0])];
      const ContractAttr& attr = graph_[id].as<ContractAttr>();
      if (axis < 0 || (attr.left.contains(axis) && attr.right.contains(axis))) return false;
      found_.key = axis;
      return true;
    });
  }

  // Of a backward by itself: the axis that is missing in the number of a row that scores are lowered by, L, before the exponential. No
  // fold tells it, since the forward has made L.
  bool find_key_of_row(NodeId id, const std::vector<int>& own) {
    return walk_users(id, own, [&](NodeId user, NodeId node, const std::vector<int>& axes) -> std::optional<bool> {
      if (!is_map(user, MapFn::sub) || graph_[user].operands[0] != node || !is_exponent(user)) return std::nullopt;
      const auto there = axes_of_user(user, node, axes);
      if (!there || !is_pair(*there)) return std::nullopt;
      const std::vector<int> row = axes_of_operand(graph_[user], 1, *there);
      int missing = 0;
      for (const int axis : own)
        if (std::ranges::find(row, axis) == row.end()) ++missing, found_.key = axis;
      has_softmax_ = missing == 1;
      return has_softmax_;
    });
  }

  bool is_map(NodeId id, MapFn fn) const { return einc::is_map(graph_[id], fn); }
  bool is_exponent(NodeId id) const {
    return std::ranges::any_of(users_[id], [&](NodeId user) { return is_map(user, MapFn::exp); });
  }

  // A value per row and key that is a product, too: of the results' gradient with values. A loss over classes has scores alone.
  bool has_weight_gradient() const {
    return std::ranges::any_of(found_.pairs, [&](NodeId id) { return id != found_.scores && graph_[id].op == Op::contract; });
  }

  bool has_key(const std::vector<int>& axes) const { return std::find(axes.begin(), axes.end(), found_.key) != axes.end(); }

  // Every axis of the scores but those of size 1.
  bool is_pair(const std::vector<int>& axes) const {
    const Shape& shape = graph_.shape(found_.scores);
    for (size_t i = 0; i < shape.size(); ++i)
      if (shape[i] != 1 && std::find(axes.begin(), axes.end(), static_cast<int>(i)) == axes.end()) return false;
    return true;
  }

  void add(NodeId id, std::vector<int> axes) {
    if (found_.axes.count(id.index) > 0) return;
    const Op op = graph_[id].op;
    const bool pair = has_key(axes);
    found_.axes.emplace(id.index, std::move(axes));
    pending_.push_back(id);
    if (kind_of(op) == OpKind::view) return;
    if (pair && roots_[id.index]) refuse(id, "its scores are kept");
    if (pair) found_.pairs.push_back(id);
    member(id);
  }

  void member(NodeId id) {
    const Phase phase = graph_[id].origin.phase;
    if (phase == Phase::optimizer) return refuse(id, "the optimizer reads its scores");
    nodes_of(phase).members.push_back(id);
  }

  AttentionNodes& nodes_of(Phase phase) { return phase == Phase::forward ? found_.forward : found_.backward; }

  void visit(NodeId id) {
    const std::vector<int> axes = found_.axes.at(id.index);
    const bool pair = has_key(axes);
    if (pair) visit_operands(id, axes);
    for (NodeId user : users_[id]) {
      if (found_.axes.count(user.index) > 0) continue;
      if (pair)
        visit_user(user, id, axes);
      else
        visit_user_of_row(user, id, axes);
    }
  }

  void visit_user(NodeId user, NodeId id, const std::vector<int>& axes) {
    const Op op = graph_[user].op;
    if (op == Op::reduce) return visit_fold(user, axes);
    if (op == Op::contract) return visit_contraction(user, id, axes);
    auto there = axes_of_user(user, id, axes);
    if (!there) return refuse(user, "it reads scores in another way");
    add(user, std::move(*there));
  }

  void visit_fold(NodeId user, const std::vector<int>& axes) {
    const ReduceAttr& attr = graph_[user].as<ReduceAttr>();
    if (attr.axes.size() != 1 || axes[static_cast<size_t>(attr.axes[0])] != found_.key)
      return refuse(user, "scores are reduced over another axis than their keys");
    std::vector<int> kept = axes;
    kept.erase(kept.begin() + attr.axes[0]);
    NodeId x = graph_[user].operands[0];
    while (graph_[x].op == Op::cast) x = graph_[x].operands[0];
    if (attr.fn == ReduceFn::sum && is_map(x, MapFn::exp) && graph_[user].origin.phase == Phase::forward) has_softmax_ = true;
    add(user, std::move(kept));
  }

  // A contraction that reads scores: over the keys alone, or over rows and not the keys.
  void visit_contraction(NodeId user, NodeId id, const std::vector<int>& axes) {
    const Node& node = graph_[user];
    const ContractAttr& attr = node.as<ContractAttr>();
    if (node.operands[0] == node.operands[1]) return refuse(user, "scores are multiplied with themselves");
    const AxisList& own = node.operands[0] == id ? attr.left : attr.right;
    const auto rank = static_cast<int>(graph_.shape(user).size());
    int summed = 0;
    bool over_keys = false;
    for (int i = 0; i < own.size(); ++i) {
      if (own[i] < rank) continue;
      ++summed;
      over_keys = over_keys || axes[static_cast<size_t>(i)] == found_.key;
    }
    if (over_keys && summed > 1) return refuse(user, "a contraction sums over keys and rows");
    const Phase phase = node.origin.phase;
    if (phase == Phase::optimizer) return refuse(user, "the optimizer reads its scores");
    AttentionNodes& nodes = nodes_of(phase);
    if (std::find(nodes.results.begin(), nodes.results.end(), user) != nodes.results.end())
      return refuse(user, "a contraction of two values per row and key");
    nodes.results.push_back(user);
    nodes.members.push_back(user);
    mixes_ = mixes_ || (over_keys && (phase == Phase::forward || alone_));
  }

  // Folds join rows again (scores minus their maximum); what else reads a fold may read it from memory.
  void visit_user_of_row(NodeId user, NodeId id, const std::vector<int>& axes) {
    if (graph_[user].op != Op::map && kind_of(graph_[user].op) != OpKind::view) return;
    const Node& node = graph_[user];
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const auto other = found_.axes.find(node.operands[k].index);
      if (other != found_.axes.end() && has_key(other->second)) return;  // its scores bring it in
    }
    auto there = axes_of_user(user, id, axes);
    if (there && kind_of(node.op) == OpKind::view) add(user, std::move(*there));
  }

  // What the backward's pairs read of a row that the forward makes of folds alone is the forward's to keep.
  bool add_kept_rows() {
    const std::vector<NodeId> pairs = found_.pairs;
    for (NodeId id : pairs) {
      const Node& node = graph_[id];
      if (node.origin.phase != Phase::backward || node.op != Op::map) continue;
      const std::vector<int> axes = found_.axes.at(id.index);
      for (size_t k = 0; k < node.operands.size(); ++k)
        if (is_of_folds(node.operands[k])) add_row(node.operands[k], axes_of_operand(node, k, axes));
    }
    return !pending_.empty();
  }

  bool is_row(NodeId x) const {
    const auto known = found_.axes.find(x.index);
    return known != found_.axes.end() && !has_key(known->second);
  }

  // A map in the forward of folds, single numbers and such maps that is no member yet.
  bool is_of_folds(NodeId x) const {
    const Node& node = graph_[x];
    if (node.op != Op::map || node.origin.phase != Phase::forward || free_[x.index] || found_.axes.contains(x.index)) return false;
    return std::ranges::all_of(node.operands, [&](NodeId y) { return is_row(y) || free_[y.index] || is_of_folds(y); });
  }

  void add_row(NodeId x, const std::vector<int>& axes) {
    const Node& node = graph_[x];
    for (size_t k = 0; k < node.operands.size(); ++k)
      if (is_of_folds(node.operands[k])) add_row(node.operands[k], axes_of_operand(node, k, axes));
    add(x, axes);
  }

  // What a value per row and key is made of, when that is a value per row and key too.
  void visit_operands(NodeId id, const std::vector<int>& axes) {
    const Node& node = graph_[id];
    if (!is_elementwise(node.op)) return;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const NodeId x = node.operands[k];
      if (free_[x.index] || found_.axes.count(x.index) > 0) continue;
      std::vector<int> there = axes_of_operand(node, k, axes);
      const Op op = graph_[x].op;
      const bool is_drawn = op == Op::random || is_drawn_part(graph_, x);
      if (is_pair(there) && has_key(there) && (is_elementwise(op) || op == Op::contract || is_drawn)) add(x, std::move(there));
    }
  }

  // The scores' axes along those of an elementwise node's operand.
  static std::vector<int> axes_of_operand(const Node& node, size_t k, const std::vector<int>& axes) {
    if (node.op != Op::map) return axes;
    std::vector<int> there;
    for (const int position : node.as<MapAttr>().maps[k]) there.push_back(axes[static_cast<size_t>(position)]);
    return there;
  }

  // The scores' axes along the axes of a user that keeps them all.
  std::optional<std::vector<int>> axes_of_user(NodeId user, NodeId id, const std::vector<int>& axes) const {
    const Node& node = graph_[user];
    const Shape& shape = graph_.shape(user);
    std::vector<int> out(shape.size(), -1);
    const auto put = [&](int at, size_t i) { out[static_cast<size_t>(at)] = axes[i]; };
    if (node.op == Op::map) {
      for (size_t k = 0; k < node.operands.size(); ++k) {
        if (node.operands[k] != id) continue;
        const AxisList& map = node.as<MapAttr>().maps[k];
        for (int i = 0; i < map.size(); ++i) put(map[i], static_cast<size_t>(i));
      }
    } else if (node.op == Op::cast || node.op == Op::stop_gradient) {
      out = axes;
    } else if (node.op == Op::permute) {
      const AxisList& order = node.as<PermuteAttr>().order;
      for (int i = 0; i < order.size(); ++i) put(i, static_cast<size_t>(order[i]));
    } else if (node.op == Op::broadcast) {
      const AxisList& map = node.as<BroadcastAttr>().map;
      for (int i = 0; i < map.size(); ++i) put(map[i], static_cast<size_t>(i));
    } else if (node.op == Op::split || node.op == Op::merge) {
      const AxisList& counts = node.op == Op::split ? node.as<SplitAttr>().counts : node.as<MergeAttr>().counts;
      // Only axes of size 1 may come and go.
      int i = 0, o = 0;
      for (int count : counts) {
        if (count > 1) return std::nullopt;
        if (count == 1) put(o, static_cast<size_t>(i));
        i += node.op == Op::split ? 1 : count;
        o += node.op == Op::split ? count : 1;
      }
    } else {
      return std::nullopt;
    }
    for (size_t i = 0; i < out.size(); ++i)
      if (out[i] < 0 && shape[i] != 1) return std::nullopt;
    return out;
  }

  // What lies on a path between members is a member too: values per row.
  void close_paths(AttentionNodes& nodes, Phase phase) {
    if (nodes.members.empty()) return;
    const auto [low, high] = std::minmax_element(nodes.members.begin(), nodes.members.end());
    const uint32_t first = low->index, last = high->index;
    std::vector<bool> inside(last - first + 1, false), after(inside), before(inside);
    for (NodeId id : nodes.members) inside[id.index - first] = true;
    for (uint32_t i = first; i <= last; ++i)
      for (NodeId x : graph_.graph.nodes[i].operands)
        if (x.index >= first && (inside[x.index - first] || after[x.index - first])) after[i - first] = true;
    for (uint32_t i = last + 1; i-- > first;) {
      if (!graph_.live[i] || !(inside[i - first] || before[i - first])) continue;
      for (NodeId x : graph_.graph.nodes[i].operands)
        if (x.index >= first) before[x.index - first] = true;
    }
    for (uint32_t i = first; i <= last; ++i) {
      const NodeId id{i};
      if (inside[i - first] || !after[i - first] || !before[i - first] || !graph_.live[i]) continue;
      if (kind_of(graph_[id].op) == OpKind::view) continue;
      if (graph_[id].op != Op::map && graph_[id].op != Op::cast) return refuse(id, "another kernel must run in between");
      if (graph_[id].origin.phase != phase) return refuse(id, "another phase runs in between");
      nodes.members.push_back(id);
      find_row(id);
    }
  }

  // Of a value that a row has one of: what its axes are.
  void find_row(NodeId id) {
    for (const NodeId x : graph_[id].operands) {
      auto there = is_row(x) ? axes_of_user(id, x, found_.axes.at(x.index)) : std::nullopt;
      if (!there) continue;
      found_.axes.emplace(id.index, std::move(*there));
      return;
    }
  }

  void sort_all() {
    for (AttentionNodes* nodes : {&found_.forward, &found_.backward}) {
      std::sort(nodes->members.begin(), nodes->members.end());
      std::sort(nodes->results.begin(), nodes->results.end());
    }
    std::sort(found_.pairs.begin(), found_.pairs.end());
  }

  const BoundGraph& graph_;
  const std::vector<bool>&roots_, &free_;
  const ReaderLists& users_;
  FoundAttention found_;
  std::vector<NodeId> pending_;
  std::optional<FusionRefusal> refusal_;
  bool has_softmax_ = false, mixes_ = false;
  bool alone_ = false;  // a backward whose scores no forward makes
};

ReaderLists users_of(const BoundGraph& graph) {
  std::vector<std::pair<NodeId, NodeId>> reads;
  for (uint32_t i = 0; i < graph.graph.size(); ++i) {
    if (!graph.live[i]) continue;
    const auto& operands = graph.graph.nodes[i].operands;
    for (auto x = operands.begin(); x != operands.end(); ++x)
      if (std::find(operands.begin(), x, *x) == x) reads.emplace_back(*x, NodeId{i});
  }
  return {graph.graph.size(), reads};
}

}  // namespace

AttentionSearch find_attention(const BoundGraph& graph, const std::vector<bool>& roots, const std::vector<bool>& free) {
  AttentionSearch search;
  const ReaderLists users = users_of(graph);
  std::vector<bool> taken(graph.graph.size(), false);
  for (uint32_t i = 0; i < graph.graph.size(); ++i) {
    const Node& node = graph.graph.nodes[i];
    if (!graph.live[i] || node.op != Op::contract || node.origin.phase == Phase::optimizer || taken[i]) continue;
    Finder finder(graph, roots, free, users);
    auto found = finder.run(NodeId{i});
    if (found) {
      for (const AttentionNodes* nodes : {&found->forward, &found->backward})
        for (NodeId id : nodes->members) taken[id.index] = true;
      search.found.push_back(std::move(*found));
    } else if (finder.looks_like_attention() && finder.refusal()) {
      search.refusals.push_back(*finder.refusal());
    }
  }
  return search;
}

}  // namespace einc
