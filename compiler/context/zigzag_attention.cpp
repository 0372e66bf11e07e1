// SPDX-License-Identifier: Apache-2.0
// Nodes are copied one by one. An axis of a result is in zigzag order where that axis of an operand is, which its label tells (factors.h);
// operands that are not follow. What needs an axis whole and in the program's order (a slice, a running sum) has it put back.
#include "compiler/context/zigzag_attention.h"

#include <algorithm>
#include <map>
#include <set>
#include <utility>

#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"
#include "compiler/partition/decide.h"
#include "compiler/partition/spread.h"
#include "compiler/partition/zigzag.h"

namespace einc {
namespace {

// By node: it is a comparison of order, or made of one.
std::vector<bool> following_from_order(const Graph& graph) {
  std::vector<bool> follows(graph.size());
  for (uint32_t i = 0; i < graph.size(); ++i)
    follows[i] = compares_order(graph.nodes[i]) || std::ranges::any_of(graph.nodes[i].operands, [&](NodeId x) { return follows[x.index]; });
  return follows;
}

// Whether which keys a row sees follows from an order of their numbers.
bool is_causal(const Graph& graph, const std::vector<bool>& free, const std::vector<bool>& of_order, const SplitAttention& split) {
  const FoundAttention& found = split.attention;
  for (const NodeId id : found.pairs) {
    const Node& node = graph[id];
    if (node.op != Op::map) continue;
    const std::vector<int>& axes = found.axes.at(id.index);
    for (size_t k = 0; k < node.operands.size(); ++k) {
      bool row = false, key = false;
      for (const int to : node.as<MapAttr>().maps[k]) {
        row = row || axes[static_cast<size_t>(to)] == split.row;
        key = key || axes[static_cast<size_t>(to)] == found.key;
      }
      if (row && key && free[node.operands[k].index] && of_order[node.operands[k].index]) return true;
    }
  }
  return false;
}

class ZigzagCopier {
 public:
  ZigzagCopier(const Graph& graph, std::vector<const SplitAttention*> attentions, std::set<const FoundAttention*> round,
               const LayoutValues& values)
      : in_(graph),
        attentions_(std::move(attentions)),
        round_(std::move(round)),
        mesh_axis_(attentions_[0]->mesh_axis),
        devices_(graph.mesh.axes[static_cast<size_t>(mesh_axis_)]),
        length_(graph.type(attentions_[0]->attention.scores).axis(attentions_[0]->row).size),
        values_(values),
        free_(free_nodes(graph)),
        build_(out_.graph) {}

  std::optional<ZigzagGraph> run() {
    if (!find_sequences()) return std::nullopt;
    Graph& g = out_.graph;
    g = in_;
    g.nodes.clear();
    out_.at.resize(in_.size());
    order_.resize(in_.size());
    of_attention_.resize(in_.size(), nullptr);
    for (const SplitAttention* split : attentions_)
      for (const auto& [node, axes] : split->attention.axes) of_attention_[node] = &split->attention;
    for (uint32_t i = 0; i < in_.size(); ++i) node(i);
    roots();
    for (const AxisList& axes : order_) out_.order.push_back({axes, axes.empty() ? -1 : mesh_axis_});
    return std::move(out_);
  }

 private:
  // Declarations that the mesh axis alone splits along the sequence.
  bool find_sequences() {
    const Poly chunks = devices_.size * Poly(2);
    const auto length = values_.known(length_), count = values_.known(chunks);
    if (!length || !count || *length % *count != 0) return false;
    const std::vector<DeclaredLayout> declared = declared_layouts(in_, find_narrowing(in_), values_);
    declared_.resize(in_.size());
    bool any = false;
    for (uint32_t i = 0; i < in_.size(); ++i)
      for (int axis = 0; axis < static_cast<int>(declared[i].read.axes.size()); ++axis) {
        const AxisList& over = declared[i].read.over(axis);
        if (!over.contains(mesh_axis_) || !(in_.type(NodeId{i}).axis(axis).size == length_)) continue;
        if (over.size() > 1) return false;
        declared_[i].push_back(axis);
        any = true;
      }
    return any;
  }

  // ---- nodes

  void node(uint32_t i) {
    Node made = in_.nodes[i];
    build_.origin = made.origin;
    if (made.operands.empty()) {
      out_.at[i] = build_.append(std::move(made));
      set_order(i, declared_[i]);
      return;
    }
    const Factors factors = factors_of(in_, NodeId{i});
    std::vector<bool> dealt(factors.labels.size(), false);  // by label: in zigzag order
    find_labels(i, factors, dealt);
    for (size_t k = 0; k < made.operands.size(); ++k) {
      if (is_made_anew(i, made.operands[k])) {
        made.operands[k] = out_.at[made.operands[k].index];
        continue;
      }
      AxisList want;
      for (int axis = 0; axis < in_.type(made.operands[k]).rank(); ++axis)
        if (dealt[static_cast<size_t>(factors.operands[k][static_cast<size_t>(axis)])]) want.push_back(axis);
      made.operands[k] = in_order(made.operands[k], want);
    }
    AxisList order;
    for (int axis = 0; axis < made.type.rank(); ++axis)
      if (const int label = factors.result[static_cast<size_t>(axis)]; label >= 0 && dealt[static_cast<size_t>(label)])
        order.push_back(axis);
    build_.origin = in_.nodes[i].origin;
    out_.at[i] = build_.append(std::move(made));
    set_order(i, order);
    give_back(i, factors);
  }

  void set_order(uint32_t i, const AxisList& axes) {
    order_[i] = axes;
    if (!axes.empty()) out_.hints.zigzag[out_.at[i].index] = {axes, mesh_axis_};
  }

  void find_labels(uint32_t i, const Factors& factors, std::vector<bool>& dealt) const {
    const Node& node = in_.nodes[i];
    for (size_t k = 0; k < node.operands.size(); ++k)
      for (const int axis : order_[node.operands[k].index])
        if (any_order_will_do(node, k, axis)) {
          const int label = factors.operands[k][static_cast<size_t>(axis)];
          const LabelKind kind = factors.labels[static_cast<size_t>(label)].kind;
          if (kind == LabelKind::keep || kind == LabelKind::combine) dealt[static_cast<size_t>(label)] = true;
        }
    const FoundAttention* found = attention_at(i);
    if (found == nullptr || round_.contains(found)) return;
    const std::vector<int> axes = axes_of_labels(node, i, factors, *found);
    for (size_t label = 0; label < axes.size(); ++label)
      if (axes[label] == found->key) dealt[label] = false;
  }

  // Whose value per row and key, or per row, the node is or reads.
  const FoundAttention* attention_at(uint32_t i) const {
    if (of_attention_[i] != nullptr) return of_attention_[i];
    for (const NodeId x : in_.nodes[i].operands)
      if (of_attention_[x.index] != nullptr) return of_attention_[x.index];
    return nullptr;
  }

  // What a ring makes for each of its steps.
  bool is_made_anew(uint32_t i, NodeId operand) const {
    const FoundAttention* found = of_attention_[i];
    return found != nullptr && round_.contains(found) && free_[operand.index] && std::ranges::binary_search(found->pairs, NodeId{i});
  }

  // Whether what is made along this axis at one place follows from operands at that place alone, or from all of them alike.
  static bool any_order_will_do(const Node& node, size_t k, int axis) {
    const auto alone = [&](const AxisList& counts, bool splits) {
      for (int group = 0, first = 0; group < counts.size(); first += counts[group], ++group)
        if (splits ? group == axis : axis >= first && axis < first + counts[group]) return counts[group] == 1;
      return false;
    };
    if (node.op == Op::split) return alone(node.as<SplitAttr>().counts, true);
    if (node.op == Op::merge) return alone(node.as<MergeAttr>().counts, false);
    // A scan's results stand apart from it.
    return node.op != Op::shift && node.op != Op::dropout && node.op != Op::scan && (node.op != Op::scatter_set || k < 2);
  }

  // Gradients of keys and values, as attention sums them over a device's rows: what takes them takes parts in zigzag order.
  void give_back(uint32_t i, const Factors& factors) {
    const FoundAttention* found = attention_at(i);
    if (found == nullptr || round_.contains(found) || !std::ranges::binary_search(found->backward.results, NodeId{i})) return;
    const std::vector<int> axes = axes_of_labels(in_.nodes[i], i, factors, *found);
    for (int axis = 0; axis < in_.nodes[i].type.rank(); ++axis) {
      if (axes[static_cast<size_t>(factors.result[static_cast<size_t>(axis)])] != found->key) continue;
      const uint32_t first = out_.at[i].index;
      AxisList order = order_[i];
      order.push_back(axis);
      out_.at[i] = zigzag(build_, out_.at[i], axis, devices_.size, ZigzagMove::into);
      for (uint32_t n = first; n < out_.at[i].index; ++n) out_.hints.waiting.emplace_back(NodeId{n}, mesh_axis_);
      Layout wish(in_.nodes[i].type.rank());
      wish.over(axis) = {mesh_axis_};
      out_.hints.wishes.emplace_back(out_.at[i], std::move(wish));
      set_order(i, order);
    }
  }

  // ---- operands

  // The node's value with these axes, and no others, in zigzag order.
  NodeId in_order(NodeId id, const AxisList& axes) {
    const AxisList& have = order_[id.index];
    if (same(have, axes)) return out_.at[id.index];
    const std::pair key{id, std::vector<int>(axes.begin(), axes.end())};
    if (const auto known = laid_.find(key); known != laid_.end()) return known->second;
    const Origin origin = std::exchange(build_.origin, in_[id].origin);
    const NodeId made = free_[id.index] && have.empty() ? of_indices(id, axes) : moved(id, axes);
    build_.origin = origin;
    return laid_[key] = made;
  }

  static bool same(const AxisList& a, const AxisList& b) {
    return a.size() == b.size() && std::ranges::all_of(a, [&](int axis) { return b.contains(axis); });
  }

  NodeId moved(NodeId id, const AxisList& axes) {
    NodeId x = out_.at[id.index];
    for (const int axis : order_[id.index])
      if (!axes.contains(axis)) x = zigzag(build_, x, axis, devices_.size, ZigzagMove::out_of);
    for (const int axis : axes)
      if (!order_[id.index].contains(axis)) x = zigzag(build_, x, axis, devices_.size, ZigzagMove::into);
    return x;
  }

  // What follows from indices is made of the positions themselves, so that whoever reads it sees a formula and nothing is stored.
  NodeId of_indices(NodeId id, const AxisList& axes) {
    Node node = in_[id];
    if (node.op == Op::iota) return zigzag_positions(build_, node.type.axis(0), node.type.dtype, devices_);
    if (node.op != Op::map && node.op != Op::cast && node.op != Op::broadcast && node.op != Op::permute) return moved(id, axes);
    for (size_t k = 0; k < node.operands.size(); ++k) {
      AxisList want;
      for (int axis = 0; axis < in_.type(node.operands[k]).rank(); ++axis)
        if (axes.contains(result_axis(node, k, axis))) want.push_back(axis);
      node.operands[k] = in_order(node.operands[k], want);
    }
    return build_.append(std::move(node));
  }

  static int result_axis(const Node& node, size_t k, int axis) {
    if (node.op == Op::map) return node.as<MapAttr>().maps[k][axis];
    if (node.op == Op::broadcast) return node.as<BroadcastAttr>().map[axis];
    return node.op == Op::permute ? node.as<PermuteAttr>().order.find(axis) : axis;
  }

  // ---- roots

  // A new value has the order of what it becomes; all others leave as they lie.
  void roots() {
    Graph& g = out_.graph;
    for (Output& output : g.outputs) output.node = out_.at[output.node.index];
    for (size_t i = 0; i < g.updates.size(); ++i) {
      const Update& update = in_.updates[i];
      const AxisList& order = order_[update.target.index];
      build_.origin = in_[update.value].origin;
      g.updates[i] = {out_.at[update.target.index], in_order(update.value, order)};
      if (!order.empty()) out_.hints.zigzag[g.updates[i].value.index] = {order, mesh_axis_};
    }
    for (Update& gradient : g.gradients) {
      gradient.target = out_.at[gradient.target.index];
      if (gradient.value.valid()) gradient.value = out_.at[gradient.value.index];
    }
    if (g.loss.valid()) g.loss = out_.at[g.loss.index];
  }

  const Graph& in_;
  const std::vector<const SplitAttention*> attentions_;
  const std::set<const FoundAttention*> round_;  // of those whose keys go round
  const int mesh_axis_;
  const MeshAxis devices_;
  const Poly length_;
  const LayoutValues& values_;
  const std::vector<bool> free_;
  ZigzagGraph out_;
  Builder build_;
  std::vector<AxisList> declared_, order_;  // by node given
  std::vector<const FoundAttention*> of_attention_;
  std::map<std::pair<NodeId, std::vector<int>>, NodeId> laid_;
};

}  // namespace

std::optional<ZigzagGraph> zigzag_attention(const Graph& graph, const std::vector<SplitAttention>& found, const std::vector<bool>& go_round,
                                            const Bindings& given) {
  const std::vector<bool> free = free_nodes(graph), of_order = following_from_order(graph);
  std::vector<const SplitAttention*> dealt;
  std::set<const FoundAttention*> round;
  bool any = false;
  for (size_t i = 0; i < found.size(); ++i) {
    const SplitAttention& split = found[i];
    const bool alone = split.row_over.size() == 1 && split.key_over.size() == 1, causal = alone && is_causal(graph, free, of_order, split);
    if (!causal && !go_round[i]) continue;
    const Type& scores = graph.type(split.attention.scores);
    const bool same = dealt.empty() || (split.mesh_axis == dealt[0]->mesh_axis &&
                                        scores.axis(split.row).size == graph.type(dealt[0]->attention.scores).axis(dealt[0]->row).size);
    const bool fits = alone && same && scores.axis(split.row).size == scores.axis(split.attention.key).size;
    if (!fits && go_round[i]) return std::nullopt;
    if (!fits) continue;
    dealt.push_back(&split);
    if (go_round[i]) round.insert(&split.attention);
    any = any || causal;
  }
  if (!any) return std::nullopt;
  const LayoutValues values{graph.dims.bind(given).values, graph.dims.values_or(given, 1024)};
  return ZigzagCopier(graph, std::move(dealt), std::move(round), values).run();
}

}  // namespace einc
