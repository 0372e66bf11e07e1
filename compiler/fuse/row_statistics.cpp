// SPDX-License-Identifier: Apache-2.0
// What is read of the graph given is kept by its node ids; nodes are then copied one by one. L is made right behind its sum, with the
// forward's nodes, since a kernel's turn follows from the numbers of its nodes. Values of pairs that the backward makes from weights
// (rounded or dropped ones) are copied for it, so that it reads no weight of the forward.
#include "compiler/fuse/row_statistics.h"

#include <algorithm>
#include <map>
#include <optional>
#include <set>

#include "compiler/fuse/softmax_attention.h"
#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

// D as a sum over the elements of dO and O: where each one's axes lie among D's, then the elements' own.
struct Delta {
  NodeId gradient, result;
  AxisList gradient_axes, result_axes;
  std::vector<Axis> elements;
};

// Reads one attention of the graph given.
class StatisticsFinder {
 public:
  StatisticsFinder(const BoundGraph& graph, const FoundAttention& found) : graph_(graph), found_(found) {}

  std::map<NodeId, SoftmaxWeight> weights() const {
    std::map<NodeId, SoftmaxWeight> weights;
    for (NodeId id : found_.pairs)
      if (const auto weight = weight_of(id)) weights.emplace(id, *weight);
    return weights;
  }

  // Of the weights: the sums over keys of P dP.
  std::map<NodeId, Delta> deltas(const std::map<NodeId, SoftmaxWeight>& weights) const {
    std::map<NodeId, Delta> deltas;
    for (NodeId id : found_.backward.members)
      if (const auto delta = delta_of(id, weights)) deltas.emplace(id, *delta);
    return deltas;
  }

  // The products dP of a delta where nothing but its sum reads them, rounded or not, and what D is subtracted from.
  std::optional<NodeId> only_subtracted(NodeId delta) const {
    const NodeId summed = graph_[delta].operands[0];
    for (NodeId x : graph_[summed].operands) {
      const NodeId product = unrounded(x);
      if (graph_[product].op != Op::contract) continue;
      const auto is_subtraction = [&](NodeId id) {
        return is_map(graph_[id], MapFn::sub) && graph_[id].operands[1] == delta && graph_[id].type.dtype == DType::f32;
      };
      for (NodeId reader : found_.backward.members) {
        const auto& operands = graph_[reader].operands;
        const bool reads = std::ranges::any_of(operands, [&](NodeId y) { return unrounded(y) == product; });
        if (reads && reader != summed && graph_[reader].op != Op::cast && !is_subtraction(reader)) return std::nullopt;
      }
      return product;
    }
    return std::nullopt;
  }

 private:
  const std::vector<int>& axes(NodeId id) const { return found_.axes.at(id.index); }

  bool is_over_keys(NodeId id) const {
    const Node& node = graph_[id];
    const AxisList& over = node.as<ReduceAttr>().axes;
    return over.size() == 1 && found_.axes.contains(node.operands[0].index) &&
           axes(node.operands[0])[static_cast<size_t>(over[0])] == found_.key;
  }

  std::optional<SoftmaxWeight> weight_of(NodeId id) const {
    if (graph_[id].origin.phase != Phase::forward) return std::nullopt;
    const auto weight = softmax_weight(graph_.graph, found_, id);
    return weight && is_read_as_quotient(*weight) ? weight : std::nullopt;
  }

  // No part of it is read in the backward: that would be made of a maximum and a sum all the same.
  bool is_read_as_quotient(const SoftmaxWeight& weight) const {
    for (NodeId id : found_.backward.members)
      for (NodeId x : graph_[id].operands)
        if (x == weight.difference || x == weight.exponential || x == weight.max || x == weight.sum) return false;
    return true;
  }

  NodeId unrounded(NodeId id) const { return before_rounding(graph_.graph, id); }

  std::optional<Delta> delta_of(NodeId id, const std::map<NodeId, SoftmaxWeight>& weights) const {
    if (!is_reduce(graph_[id], ReduceFn::sum) || !is_over_keys(id) || bytes_of(graph_[id].type.dtype) < 4) return std::nullopt;
    const Node& product = graph_[graph_[id].operands[0]];
    if (!is_map(product, MapFn::mul)) return std::nullopt;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const NodeId weight = unrounded(product.operands[k]), of_values = unrounded(product.operands[1 - k]);
      if (!weights.contains(weight) || graph_[of_values].op != Op::contract) continue;
      for (NodeId result : found_.forward.results)
        if (auto delta = delta_of(id, weight, of_values, result)) return delta;
    }
    return std::nullopt;
  }

  // Of dP = dO V^T and O = P V, of the same V.
  std::optional<Delta> delta_of(NodeId id, NodeId weight, NodeId of_values, NodeId result) const {
    const Node &made = graph_[of_values], &mixed = graph_[result];
    for (const size_t v : {size_t{0}, size_t{1}}) {
      for (const size_t w : {size_t{0}, size_t{1}}) {
        if (graph_.given_of(made.operands[v]) != graph_.given_of(mixed.operands[1 - w]) || unrounded(mixed.operands[w]) != weight) continue;
        const auto &dp = made.as<ContractAttr>(), &o = mixed.as<ContractAttr>();
        const AxisList &values = v == 0 ? dp.left : dp.right, &gradient = v == 0 ? dp.right : dp.left;
        Delta delta{made.operands[1 - v], result, {}, {}, {}};
        find_elements(made.operands[v], values, made.type.rank(), delta.elements);
        if (place_gradient(id, of_values, gradient, values, delta.gradient_axes) &&
            place_result(id, mixed.operands[w], w == 0 ? o.left : o.right, w == 0 ? o.right : o.left, values, made, delta))
          return delta;
      }
    }
    return std::nullopt;
  }

  // Where axis `of_scores` lies in D; -1: it has none.
  int place_in(NodeId delta, int of_scores) const {
    const auto found = std::ranges::find(axes(delta), of_scores);
    return of_scores < 0 || found == axes(delta).end() ? -1 : static_cast<int>(found - axes(delta).begin());
  }

  // Axes of V that dP sums over.
  void find_elements(NodeId v, const AxisList& values, int rank, std::vector<Axis>& elements) const {
    for (int i = 0; i < values.size(); ++i)
      if (values[i] >= rank) elements.push_back(graph_[v].type.axis(i));
  }

  // Where the element along axis `v` of V lies behind a row's axes.
  static int element_place(int rows, const AxisList& values, int v, int rank) {
    return rows + static_cast<int>(std::count_if(values.begin(), values.begin() + v, [&](int label) { return label >= rank; }));
  }

  // The axes of dO: those of pairs by what they are in dP, and elements.
  bool place_gradient(NodeId delta, NodeId of_values, const AxisList& gradient, const AxisList& values, AxisList& out) const {
    const int rank = graph_[of_values].type.rank(), rows = graph_[delta].type.rank();
    for (const int label : gradient) {
      const int v = values.find(label);
      const int at = label < rank ? place_in(delta, axes(of_values)[static_cast<size_t>(label)])
                     : v < 0      ? -1
                                  : element_place(rows, values, v, rank);
      if (at < 0) return false;
      out.push_back(at);
    }
    return true;
  }

  // The axes of O: those of the weights, and of V those that dP sums over.
  bool place_result(NodeId delta, NodeId weight, const AxisList& of_weight, const AxisList& of_value, const AxisList& values,
                    const Node& made, Delta& out) const {
    const int rank = graph_[out.result].type.rank(), dp_rank = made.type.rank(), rows = graph_[delta].type.rank();
    for (int i = 0; i < rank; ++i) {
      int at = -1;
      if (const int w = of_weight.find(i); w >= 0) {
        at = place_in(delta, axes(weight)[static_cast<size_t>(w)]);
      } else if (const int v = of_value.find(i); v >= 0 && values[v] >= dp_rank) {
        at = element_place(rows, values, v, dp_rank);
      }
      if (at < 0) return false;
      out.result_axes.push_back(at);
    }
    return true;
  }

  const BoundGraph& graph_;
  const FoundAttention& found_;
};

class StatisticsRewriter {
 public:
  explicit StatisticsRewriter(const BoundGraph& given)
      : given_(given), graph_(std::make_unique<Graph>(without_nodes(given.graph))), build_(*graph_), at_(given.graph.size()) {}

  void add(const FoundAttention& found) {
    if (found.backward.members.empty()) return;
    const StatisticsFinder finder(given_, found);
    const std::map<NodeId, SoftmaxWeight> weights = finder.weights();
    for (const auto& [id, weight] : weights) sums_[weight.sum] = weight;
    weights_.insert(weights.begin(), weights.end());
    for (const auto& [id, delta] : finder.deltas(weights)) {
      deltas_.emplace(id, delta);
      if (const auto product = finder.only_subtracted(id)) kept_wide_.insert(*product);
    }
    find_dependents(found);
  }

  RowStatistics run() {
    if (weights_.empty()) return {};
    for (uint32_t i = 0; i < given_.graph.size(); ++i) at_[i] = copy(NodeId{i});
    for_each_root(*graph_, [&](NodeId& id) { id = at_[id.index]; });
    return {std::move(graph_), std::move(at_)};
  }

 private:
  // Values of pairs in the forward that are made of weights: the backward has them from weights of its own.
  void find_dependents(const FoundAttention& found) {
    std::set<uint32_t> among;
    for (const auto& [index, axes] : found.axes)
      if (std::ranges::find(axes, found.key) != axes.end()) among.insert(index);
    for (uint32_t index : among) {
      const Node& node = given_.graph.nodes[index];
      if (node.origin.phase != Phase::forward) continue;
      const auto depends = [&](NodeId x) { return weights_.contains(x) || dependents_.contains(x); };
      if (std::ranges::any_of(node.operands, depends)) dependents_.insert(NodeId{index});
    }
  }

  NodeId copy(NodeId id) {
    const Node& given = given_[id];
    if (const auto delta = deltas_.find(id); delta != deltas_.end()) return sum_of_products(id, delta->second);
    Node node = given;
    for (NodeId& x : node.operands) x = given.origin.phase == Phase::forward ? at_[x.index] : in_backward(x);
    if (kept_wide_.contains(id)) node.type.dtype = DType::f32;
    const NodeId made = build_.append(std::move(node));
    if (const auto weight = sums_.find(id); weight != sums_.end()) log_sums_[id] = log_sum(made, weight->second);
    return made;
  }

  NodeId log_sum(NodeId sum, const SoftmaxWeight& weight) {
    build_.origin = graph_->nodes[sum.index].origin;
    return build_.map(MapFn::add, {at_[weight.max.index], build_.map(MapFn::log, {sum})});
  }

  // What a node of the backward reads in the place of `x`.
  NodeId in_backward(NodeId x) {
    const auto weight = weights_.find(x);
    if (weight == weights_.end() && !dependents_.contains(x)) return at_[x.index];
    if (const auto known = of_backward_.find(x); known != of_backward_.end()) return known->second;
    NodeId made;
    if (weight != weights_.end()) {
      Node difference = given_[weight->second.difference], exponential = given_[weight->second.exponential];
      difference.operands = {at_[difference.operands[0].index], log_sums_.at(weight->second.sum)};
      exponential.operands = {append_late(std::move(difference))};
      made = append_late(std::move(exponential));
    } else {
      Node node = given_[x];
      for (NodeId& operand : node.operands) operand = in_backward(operand);
      made = append_late(std::move(node));
    }
    return of_backward_[x] = made;
  }

  NodeId append_late(Node node) {
    node.origin.phase = Phase::backward;
    return build_.append(std::move(node));
  }

  NodeId sum_of_products(NodeId id, const Delta& delta) {
    const Node& given = given_[id];
    build_.origin = given.origin;
    std::vector<Axis> axes = given.type.axes;
    const int rows = given.type.rank();
    axes.insert(axes.end(), delta.elements.begin(), delta.elements.end());
    const NodeId operands[] = {at_[delta.gradient.index], at_[delta.result.index]};
    const AxisList maps[] = {delta.gradient_axes, delta.result_axes};
    AxisList over;
    for (int i = rows; i < static_cast<int>(axes.size()); ++i) over.push_back(i);
    const NodeId sum = build_.reduce(ReduceFn::sum, build_.map(MapFn::mul, operands, maps, std::move(axes), given.type.dtype), over);
    graph_->nodes[sum.index].type = given.type;
    return sum;
  }

  const BoundGraph& given_;
  std::unique_ptr<Graph> graph_;
  Builder build_;
  std::vector<NodeId> at_;                   // per node given
  std::map<NodeId, SoftmaxWeight> weights_;  // of the graph given, all that follow
  std::map<NodeId, SoftmaxWeight> sums_;     // by their sums, where L is made
  std::map<NodeId, Delta> deltas_;           // by the sums over keys that they take the place of
  std::set<NodeId> dependents_;              // values of pairs in the forward that weights are in
  std::set<NodeId> kept_wide_;               // dP that D is subtracted from, not rounded before
  std::map<NodeId, NodeId> log_sums_;        // made, by sum
  std::map<NodeId, NodeId> of_backward_;
};

}  // namespace

RowStatistics use_row_statistics(const BoundGraph& graph, const std::vector<FoundAttention>& attentions) {
  StatisticsRewriter rewriter(graph);
  for (const FoundAttention& found : attentions) rewriter.add(found);
  return rewriter.run();
}

}  // namespace einc
