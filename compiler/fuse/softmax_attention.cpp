// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/softmax_attention.h"

#include <algorithm>
#include <limits>

#include "compiler/ir/map_value.h"
#include "runtime/base/float_format.h"

namespace einc {
namespace {

class SoftmaxFinder {
 public:
  SoftmaxFinder(const BoundGraph& graph, const FoundAttention& found) : graph_(graph), found_(found) {}

  std::optional<SoftmaxNodes> run() {
    if (found_.forward.results.size() != 1) return std::nullopt;
    SoftmaxNodes nodes;
    nodes.output = found_.forward.results[0];
    const auto mixed = product_of_pair(nodes.output);
    if (!mixed || !mixed->over_keys) return std::nullopt;
    weight_ = softmax_weight(graph_.graph, found_, unrounded(mixed->pair));
    if (!weight_) return std::nullopt;
    scaled_ = unrounded(graph_[weight_->difference].operands[0]);
    scale_ = peel(scaled_, -std::numeric_limits<double>::infinity());
    if (scale_.value != found_.scores || scale_.factor <= 0) return std::nullopt;
    nodes.scale = scale_.factor, nodes.causal_row = scale_.causal_row;
    nodes.log_sum = find_log_sum();
    values_ = mixed->other;
    // Of the scores' operands the keys' is the one with the key.
    const size_t of_keys = graph_[found_.scores].as<ContractAttr>().right.contains(found_.key) ? 1 : 0;
    keys_ = factor(found_.scores, of_keys), queries_ = factor(found_.scores, 1 - of_keys);
    if (nodes.log_sum.valid()) nodes.backward = backward(nodes);
    return nodes;
  }

 private:
  const std::vector<int>* axes(NodeId id) const {
    const auto known = found_.axes.find(id.index);
    return known == found_.axes.end() ? nullptr : &known->second;
  }
  bool is_pair(NodeId id) const { return axes(id) != nullptr && std::ranges::find(*axes(id), found_.key) != axes(id)->end(); }
  bool is_map(NodeId id, MapFn fn) const { return einc::is_map(graph_[id], fn); }

  NodeId unrounded(NodeId id) const { return before_rounding(graph_.graph, id); }

  // The scores' axes along those of a map's operand.
  std::vector<int> axes_of_operand(NodeId map, size_t k) const {
    std::vector<int> there;
    for (const int position : graph_[map].as<MapAttr>().maps[k]) there.push_back((*axes(map))[static_cast<size_t>(position)]);
    return there;
  }

  // A value beside one per row and key in a contraction, and as what it is read: of each of its axes the scores' axis, or -1. The same
  // value with heads and batches of one size interchanged is another operand.
  struct Operand {
    NodeId value;
    std::vector<int> axes;
    friend bool operator==(const Operand&, const Operand&) = default;
  };
  static std::vector<int> axes_beside(const AxisList& labels, const AxisList& pair_labels, const std::vector<int>& pair_axes) {
    std::vector<int> there;
    for (const int label : labels) {
      const int at = pair_labels.find(label);
      there.push_back(at < 0 ? -1 : pair_axes[static_cast<size_t>(at)]);
    }
    return there;
  }
  // What a value per row and key is a product of.
  Operand factor(NodeId product, size_t k) const {
    const Node& node = graph_[product];
    const ContractAttr& attr = node.as<ContractAttr>();
    return {graph_.given_of(node.operands[k]),
            axes_beside(k == 0 ? attr.left : attr.right, AxisList::range(node.type.rank()), *axes(product))};
  }

  // A contraction of a value per row and key with another value.
  struct Product {
    NodeId pair;
    Operand other;
    const AxisList *pair_labels, *other_labels;
    bool over_keys;
  };
  std::optional<Product> product_of_pair(NodeId id) const {
    const Node& node = graph_[id];
    const ContractAttr& attr = node.as<ContractAttr>();
    if (is_pair(node.operands[0]) == is_pair(node.operands[1])) return std::nullopt;
    const size_t at = is_pair(node.operands[0]) ? 0 : 1;
    const AxisList &pair = at == 0 ? attr.left : attr.right, &other = at == 0 ? attr.right : attr.left;
    const std::vector<int>& pair_axes = *axes(node.operands[at]);
    Product p{node.operands[at], {graph_.given_of(node.operands[1 - at]), axes_beside(other, pair, pair_axes)}, &pair, &other, false};
    for (int i = 0; i < pair.size(); ++i)
      p.over_keys = p.over_keys || (pair[i] >= node.type.rank() && pair_axes[static_cast<size_t>(i)] == found_.key);
    return p;
  }

  // A single number that the text and the sizes fix, as it is rounded.
  std::optional<double> constant(NodeId id) const {
    const Node& node = graph_[id];
    if (node.type.rank() > 0) return std::nullopt;
    if (node.op == Op::constant) return rounded(node, graph_.value(node.as<ConstantAttr>().value));
    if (node.op != Op::map && node.op != Op::cast) return std::nullopt;
    double x[3] = {0, 0, 0};
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const auto number = constant(node.operands[k]);
      if (!number || k >= 3) return std::nullopt;
      x[k] = *number;
    }
    return rounded(node, node.op == Op::cast ? x[0] : map_value(node.as<MapAttr>().fn, x[0], x[1], x[2]));
  }
  static double rounded(const Node& node, double value) {
    return is_floating(node.type.dtype) ? round_to_format(node.type.dtype, value) : value;
  }

  // `value` times `factor`; where a causal row is given, the number of its key at most the row's.
  struct Peeled {
    NodeId value;
    double factor = 1;
    std::optional<int> causal_row;
    bool failed = false;
  };
  // Without scalings, and without masks that put `fill` instead.
  Peeled peel(NodeId id, double fill) const {
    Peeled peeled;
    for (;;) {
      peeled.value = id = unrounded(id);
      if (graph_[id].op != Op::map) return peeled;
      const auto& x = graph_[id].operands;
      if (is_map(id, MapFn::where)) {
        const std::optional<int> takes = causal_row(id, MapFn::less_equal, MapFn::greater_equal),
                                 leaves = causal_row(id, MapFn::greater, MapFn::less);
        const bool first = takes && constant(x[2]) == fill, second = leaves && constant(x[1]) == fill;
        if (!first && !second) return peeled;
        const std::optional<int> row = first ? takes : leaves;
        if (peeled.causal_row && peeled.causal_row != row) return peeled;
        peeled.causal_row = row;
        id = x[first ? 1 : 2];
      } else if (is_map(id, MapFn::mul) && (constant(x[0]) || constant(x[1]))) {
        const bool first = constant(x[0]).has_value();
        peeled.factor *= *constant(x[first ? 0 : 1]);
        id = x[first ? 1 : 0];
      } else if (is_map(id, MapFn::div) && constant(x[1])) {
        peeled.factor /= *constant(x[1]);
        id = x[0];
      } else {
        return peeled;
      }
    }
  }

  // The row of a choice whose condition compares the key's number with it: key `key_first` row, or row `row_first` key.
  std::optional<int> causal_row(NodeId choice, MapFn key_first, MapFn row_first) const {
    const NodeId mask = graph_[choice].operands[0];
    if (!is_map(mask, key_first) && !is_map(mask, row_first)) return std::nullopt;
    if (axes(choice) == nullptr) return std::nullopt;
    const std::vector<int> there = axes_of_operand(choice, 0);
    int sides[2];
    for (size_t k = 0; k < 2; ++k) {
      NodeId x = graph_[mask].operands[k];
      while (graph_[x].op == Op::cast && !is_floating(graph_[x].type.dtype) && bytes_of(graph_[x].type.dtype) >= 4)
        x = graph_[x].operands[0];
      const AxisList& map = graph_[mask].as<MapAttr>().maps[k];
      if (graph_[x].op != Op::iota || map.size() != 1) return std::nullopt;
      sides[k] = there[static_cast<size_t>(map[0])];
    }
    const size_t key = is_map(mask, key_first) ? 0 : 1;
    if (sides[key] != found_.key || sides[1 - key] == found_.key || sides[1 - key] < 0) return std::nullopt;
    return sides[1 - key];
  }

  // max + log(sum) of the forward's weight.
  NodeId find_log_sum() const {
    for (const NodeId id : found_.forward.members) {
      if (!is_map(id, MapFn::add) || axes(id) == nullptr) continue;
      const auto& x = graph_[id].operands;
      if (x[0] != weight_->max || !is_map(x[1], MapFn::log) || graph_[x[1]].operands[0] != weight_->sum) continue;
      if (axes_of_operand(id, 0) == *axes(weight_->max) && axes_of_operand(id, 1) == *axes(weight_->sum)) return id;
    }
    return {};
  }

  struct Gradients {
    SoftmaxNodes::Backward nodes;
    std::vector<int> delta_axes;  // of each axis of D: that of the scores
  };

  std::optional<SoftmaxNodes::Backward> backward(const SoftmaxNodes& nodes) const {
    Gradients made;
    auto& [weight_gradient, delta, d_queries, d_keys, d_values] = made.nodes;
    Operand d_output;
    for (const NodeId id : found_.backward.results) {
      const auto product = product_of_pair(id);
      if (!product) return std::nullopt;
      NodeId* result = &d_values;
      if (is_weight(product->pair, nodes.log_sum)) {
        if (product->over_keys) return std::nullopt;
        d_output = product->other;
      } else {
        result = product->over_keys ? &d_queries : &d_keys;
        if (product->other != (product->over_keys ? keys_ : queries_) || !is_score_gradient(product->pair, nodes, made))
          return std::nullopt;
      }
      if (result->valid()) return std::nullopt;
      *result = id;
    }
    if (!d_queries.valid() || !d_keys.valid() || !d_values.valid()) return std::nullopt;
    return is_delta(made, d_output, nodes.output) ? std::optional(made.nodes) : std::nullopt;
  }

  // exp(x - L) of the forward's x.
  bool is_weight(NodeId id, NodeId log_sum) const {
    id = unrounded(id);
    if (!is_map(id, MapFn::exp)) return false;
    const NodeId difference = graph_[id].operands[0];
    if (!is_map(difference, MapFn::sub) || axes(difference) == nullptr) return false;
    const auto& x = graph_[difference].operands;
    return unrounded(x[0]) == scaled_ && x[1] == log_sum && axes_of_operand(difference, 1) == *axes(log_sum);
  }

  // scale P (dP - D); all of them of one dP and one D.
  bool is_score_gradient(NodeId id, const SoftmaxNodes& nodes, Gradients& made) const {
    const Peeled outer = peel(id, 0);
    if (!is_map(outer.value, MapFn::mul) || outer.factor != scale_.factor || outer.causal_row != scale_.causal_row) return false;
    const auto& x = graph_[outer.value].operands;
    const size_t weight = is_weight(x[0], nodes.log_sum) ? 0 : 1;
    const NodeId difference = unrounded(x[1 - weight]);
    if (!is_weight(x[weight], nodes.log_sum) || !is_map(difference, MapFn::sub) || axes(difference) == nullptr) return false;
    const NodeId of_values = unrounded(graph_[difference].operands[0]), delta = graph_[difference].operands[1];
    if (graph_[of_values].op != Op::contract || !is_pair(of_values)) return false;
    if (made.nodes.weight_gradient.valid() && (made.nodes.weight_gradient != of_values || made.nodes.delta != delta)) return false;
    made.nodes.weight_gradient = of_values, made.nodes.delta = delta;
    made.delta_axes = axes_of_operand(difference, 1);
    return true;
  }

  // Whether D is the sum over V's elements of dO O, of O the forward's result and dO what dP and dV are made of.
  bool is_delta(const Gradients& made, const Operand& d_output, NodeId output) const {
    const NodeId weight_gradient = made.nodes.weight_gradient;
    const size_t v = factor(weight_gradient, 0) == values_ ? 0 : 1;
    if (factor(weight_gradient, v) != values_ || factor(weight_gradient, 1 - v) != d_output) return false;
    const Node& sum = graph_[made.nodes.delta];
    if (!einc::is_reduce(sum, ReduceFn::sum) || !is_map(sum.operands[0], MapFn::mul)) return false;
    const Node& product = graph_[sum.operands[0]];
    const auto is = [&](size_t k, NodeId value) { return unrounded(product.operands[k]) == unrounded(value); };
    const size_t of_gradient = is(0, d_output.value) ? 0 : 1;
    if (!is(of_gradient, d_output.value) || !is(1 - of_gradient, output)) return false;
    const auto& maps = product.as<MapAttr>().maps;
    const std::vector<int> rows = rows_of_terms(sum, made.delta_axes);
    const auto elements = elements_of_output(output, maps[1 - of_gradient], rows);
    const ContractAttr& attr = graph_[weight_gradient].as<ContractAttr>();
    return elements &&
           lies_alike(d_output, v == 0 ? attr.right : attr.left, v == 0 ? attr.left : attr.right, maps[of_gradient], rows, *elements);
  }

  // Of each axis of the products that D sums: the scores' axis, or that it is summed over.
  static constexpr int kSummed = -2;
  static std::vector<int> rows_of_terms(const Node& sum, const std::vector<int>& delta_axes) {
    const AxisList& over = sum.as<ReduceAttr>().axes;
    std::vector<int> rows;
    size_t kept = 0;
    for (int i = 0; i < sum.type.rank() + over.size(); ++i) rows.push_back(over.contains(i) ? kSummed : delta_axes[kept++]);
    return rows;
  }

  // Along each axis of V, which one of D's terms is that of O's element; nothing where another row of O is read than D's.
  std::optional<std::vector<int>> elements_of_output(NodeId output, const AxisList& map, const std::vector<int>& rows) const {
    const auto mixed = product_of_pair(output);
    std::vector<int> elements(static_cast<size_t>(mixed->other_labels->size()), -1);
    for (int o = 0; o < map.size(); ++o) {
      const int row = rows[static_cast<size_t>(map[o])], of_pair = mixed->pair_labels->find(o), of_value = mixed->other_labels->find(o);
      if (of_pair >= 0) {
        if (row != (*axes(mixed->pair))[static_cast<size_t>(of_pair)]) return std::nullopt;
      } else {
        if (row != kSummed || of_value < 0) return std::nullopt;
        elements[static_cast<size_t>(of_value)] = map[o];
      }
    }
    return elements;
  }

  // Whether dO's rows and elements are in D's terms what they are in dP, by whose labels elements of dO and V meet.
  static bool lies_alike(const Operand& d_output, const AxisList& labels, const AxisList& value_labels, const AxisList& map,
                         const std::vector<int>& rows, const std::vector<int>& elements) {
    for (int i = 0; i < map.size(); ++i) {
      const int row = d_output.axes[static_cast<size_t>(i)], shared = value_labels.find(labels[i]);
      const bool alike =
          row >= 0 ? rows[static_cast<size_t>(map[i])] == row : shared >= 0 && map[i] == elements[static_cast<size_t>(shared)];
      if (!alike) return false;
    }
    return true;
  }

  const BoundGraph& graph_;
  const FoundAttention& found_;
  std::optional<SoftmaxWeight> weight_;
  NodeId scaled_;  // what the weights are exponentials of
  Operand values_, keys_, queries_;
  Peeled scale_;
};

}  // namespace

NodeId before_rounding(const Graph& graph, NodeId id) {
  while (graph[id].op == Op::cast && is_floating(graph[graph[id].operands[0]].type.dtype)) id = graph[id].operands[0];
  return id;
}

std::optional<SoftmaxWeight> softmax_weight(const Graph& graph, const FoundAttention& found, NodeId quotient) {
  const auto is_map = [&](NodeId id, MapFn fn) { return einc::is_map(graph[id], fn); };
  const auto axes = [&](NodeId id) -> const std::vector<int>& { return found.axes.at(id.index); };
  // A fold of values per pair over the keys, of 32 bits or more.
  const auto is_fold = [&](NodeId id, ReduceFn fn, NodeId of) {
    const Node& node = graph[id];
    if (node.op != Op::reduce || node.as<ReduceAttr>().fn != fn || node.operands[0] != of || !found.axes.contains(of.index)) return false;
    const AxisList& over = node.as<ReduceAttr>().axes;
    return over.size() == 1 && axes(of)[static_cast<size_t>(over[0])] == found.key && bytes_of(node.type.dtype) >= 4;
  };
  if (!is_map(quotient, MapFn::div) || !found.axes.contains(quotient.index)) return std::nullopt;
  const NodeId exponential = graph[quotient].operands[0], sum = graph[quotient].operands[1];
  if (!is_map(exponential, MapFn::exp) || !is_fold(sum, ReduceFn::sum, exponential)) return std::nullopt;
  const NodeId difference = graph[exponential].operands[0];
  if (!is_map(difference, MapFn::sub)) return std::nullopt;
  const NodeId x = graph[difference].operands[0], max = graph[difference].operands[1];
  if (!is_fold(max, ReduceFn::max, x)) return std::nullopt;
  // Both numbers are the pair's own row's.
  if (graph[max].type.axes != graph[sum].type.axes || axes(max) != axes(sum)) return std::nullopt;
  if (graph[quotient].as<MapAttr>().maps[1] != graph[difference].as<MapAttr>().maps[1] || axes(quotient) != axes(x)) return std::nullopt;
  return SoftmaxWeight{difference, exponential, max, sum};
}

std::optional<SoftmaxNodes> find_softmax(const BoundGraph& graph, const FoundAttention& found) { return SoftmaxFinder(graph, found).run(); }

}  // namespace einc
