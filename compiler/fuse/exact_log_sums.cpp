// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/exact_log_sums.h"

#include <limits>
#include <optional>

#include "compiler/ir/build.h"
#include "compiler/ir/remap.h"

namespace einc {
namespace {

class LogSumRewriter {
 public:
  explicit LogSumRewriter(const Graph& given)
      : given_(given), graph_(std::make_unique<Graph>(without_nodes(given))), build_(*graph_), at_(given.nodes.size()) {}

  ExactLogSums run() {
    std::vector<std::optional<LogSum>> sums(given_.nodes.size());
    bool any = false;
    for (uint32_t i = 0; i < given_.size(); ++i) any |= (sums[i] = find(NodeId{i})).has_value();
    if (!any) return {};
    made_.resize(given_.nodes.size());
    for (uint32_t i = 0; i < given_.size(); ++i) at_[i] = sums[i] ? make(NodeId{i}, *sums[i]) : copy(NodeId{i});
    for_each_root(*graph_, [&](NodeId& id) { id = at_[id.index]; });
    return {std::move(graph_), std::move(at_)};
  }

 private:
  struct LogSum {
    NodeId x, max, difference;  // of the graph given
  };
  struct Parts {
    NodeId max, log;
  };

  // max + log(sum(exp(x - max))).
  std::optional<LogSum> find(NodeId id) const {
    const Node& add = given_[id];
    if (!is_map(add, MapFn::add) || !is_floating(add.type.dtype)) return std::nullopt;
    for (const size_t k : {size_t{0}, size_t{1}}) {
      const NodeId max = add.operands[k];
      const Node &log = given_[add.operands[1 - k]], &largest = given_[max];
      if (!is_map(log, MapFn::log) || !is_reduce(largest, ReduceFn::max)) continue;
      const Node& sum = given_[log.operands[0]];
      if (!is_reduce(sum, ReduceFn::sum) || sum.as<ReduceAttr>().axes != largest.as<ReduceAttr>().axes) continue;
      const Node& exp = given_[sum.operands[0]];
      if (!is_map(exp, MapFn::exp)) continue;
      const NodeId difference = exp.operands[0];
      const Node& sub = given_[difference];
      if (is_map(sub, MapFn::sub) && sub.operands[0] == largest.operands[0] && sub.operands[1] == max)
        return LogSum{sub.operands[0], max, difference};
    }
    return std::nullopt;
  }

  NodeId number(double value, DType dtype) { return build_.constant(value, dtype); }

  NodeId make(NodeId id, const LogSum& found) {
    const Node& given = given_[id];
    const DType dtype = given.type.dtype;
    build_.origin = given.origin;
    build_.origin.label = Name();
    const NodeId plain = at_[found.max.index], zero = number(0, dtype);
    const NodeId finite =
        build_.map(MapFn::less, {build_.map(MapFn::abs, {plain}), number(std::numeric_limits<double>::infinity(), dtype)});
    const NodeId max = build_.map(MapFn::where, {finite, plain, zero});
    const NodeId z = like(found.difference, {at_[found.x.index], max});
    const NodeId is_max = build_.map(MapFn::equal, {z, zero});
    const AxisList& axes = given_[found.max].as<ReduceAttr>().axes;
    const NodeId others = build_.reduce(ReduceFn::sum, build_.map(MapFn::where, {is_max, zero, build_.map(MapFn::exp, {z})}), axes);
    const NodeId ones = build_.reduce(ReduceFn::sum, build_.map(MapFn::where, {is_max, number(1, dtype), zero}), axes);
    const NodeId more = build_.map(MapFn::sub, {ones, number(1, dtype)});
    const NodeId log = build_.map(MapFn::log1p, {build_.map(MapFn::add, {others, more})});
    made_[id.index] = Parts{max, log};
    build_.origin.label = given.origin.label;
    const NodeId result = build_.map(MapFn::add, {log, max});
    graph_->nodes[result.index].type = given.type;
    return result;
  }

  // A node as the given one, of other operands.
  NodeId like(NodeId given, std::initializer_list<NodeId> operands) {
    Node node = given_[given];
    node.operands.assign(operands.begin(), operands.end());
    return build_.append(std::move(node));
  }

  NodeId copy(NodeId id) {
    const Node& given = given_[id];
    if (is_map(given, MapFn::sub)) {
      const NodeId left = given.operands[0], right = given.operands[1];
      if (made_[right.index]) return second(like(id, {at_[left.index], made_[right.index]->max}), id, 1, MapFn::sub);
      if (made_[left.index]) return second(like(id, {made_[left.index]->max, at_[right.index]}), id, 0, MapFn::add);
    }
    Node node = given;
    for (NodeId& x : node.operands) x = at_[x.index];
    return build_.append(std::move(node));
  }

  // fn(first, log), where the logarithm lies as the given node's operand of that number.
  NodeId second(NodeId first, NodeId given, size_t operand, MapFn fn) {
    Node node = given_[given];
    const auto& attr = node.as<MapAttr>();
    MapAttr now{fn, {AxisList::range(node.type.rank()), attr.maps[operand], {}}};
    node.operands = {first, made_[given_[given].operands[operand].index]->log};
    node.attr = now;
    graph_->nodes[first.index].origin.label = Name();
    return build_.append(std::move(node));
  }

  const Graph& given_;
  std::unique_ptr<Graph> graph_;
  Builder build_;
  std::vector<NodeId> at_;                  // per node given
  std::vector<std::optional<Parts>> made_;  // of the logarithms among them
};

}  // namespace

ExactLogSums exact_log_sums(const Graph& graph) { return LogSumRewriter(graph).run(); }

}  // namespace einc
