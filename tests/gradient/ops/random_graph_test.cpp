// SPDX-License-Identifier: Apache-2.0
// Random graphs of maps, views, reductions and contractions: simplification keeps every value and gradient, never adds work,
// leaves a graph that verifies and that it would not simplify again, and gives the same graph twice.
#include <cmath>

#include "tests/gradient/ops/check.h"

namespace einc::test {
namespace {

class RandomGraph {
 public:
  explicit RandomGraph(uint64_t seed) : random_(seed) {
    for (const char* name : {"a", "b", "c"}) graph.dims.declare_free(name);
    for (int i = 0; i < 3; ++i) values_.push_back(build_.param({Name("p" + std::to_string(i)), {}}, random_type()));
    values_.push_back(build_.input("x", random_type()));
    const int steps = 6 + below(14);
    for (int i = 0; i < steps; ++i) {
      const NodeId next = step();
      if (next.valid() && build_.type(next).rank() <= 4) values_.push_back(next);
    }
    NodeId loss = build_.constant(Poly(0));
    for (size_t i = values_.size() - 3; i < values_.size(); ++i)
      loss = build_.map(MapFn::add, {loss, sum_all(build_.map(MapFn::tanh, {values_[i]}))});
    minimize(graph, build_, loss);
    graph.outputs.push_back({"last", values_.back()});
  }

  Graph graph;

 private:
  int below(int n) { return static_cast<int>(random_() % static_cast<uint64_t>(n)); }
  NodeId any() { return values_[values_.size() - 1 - static_cast<size_t>(below(std::min(6, static_cast<int>(values_.size()))))]; }
  Axis random_axis() {
    const char* names[] = {"a", "b", "c"};
    const char* name = names[below(3)];
    return {name, Poly::dim(name)};
  }
  Type random_type() {
    Type type;
    for (int i = below(4); i > 0; --i) type.axes.push_back(random_axis());
    return type;
  }
  AxisList shuffled(int rank) {
    AxisList order = AxisList::range(rank);
    for (int i = rank - 1; i > 0; --i) {
      const int j = below(i + 1), held = order[i];
      order.set(i, order[j]);
      order.set(j, held);
    }
    return order;
  }
  NodeId sum_all(NodeId x) { return build_.reduce(ReduceFn::sum, x, AxisList::range(build_.type(x).rank())); }
  NodeId number() {
    switch (below(5)) {
      case 0:
        return build_.constant(Poly(below(5) - 2));
      case 1:
        return build_.constant(divide(Poly(1), Poly::dim("a")));
      case 2:
        return build_.constant(0.3);
      case 3:
        return build_.map(MapFn::rsqrt, {build_.constant(Poly::dim("b"))});
      default:
        return build_.constant(0.5);
    }
  }
  // y's axes placed at axes of equal size of x, or appended.
  NodeId binary(MapFn fn, NodeId x, NodeId y) {
    std::vector<Axis> axes = build_.type(x).axes;
    AxisList map;
    for (const Axis& axis : build_.type(y).axes) {
      int place = -1;
      for (size_t i = 0; i < axes.size() && place < 0; ++i)
        if (axes[i].size == axis.size && !map.contains(static_cast<int>(i))) place = static_cast<int>(i);
      if (place < 0) {
        place = static_cast<int>(axes.size());
        axes.push_back(axis);
      }
      map.push_back(place);
    }
    const NodeId operands[] = {x, y};
    const AxisList maps[] = {AxisList::range(build_.type(x).rank()), map};
    return build_.map(fn, operands, maps, axes, DType::real);
  }
  // Every axis of equal size that both have is summed or kept at random.
  NodeId contract(NodeId x, NodeId y) {
    const Type l = build_.type(x), r = build_.type(y);
    std::vector<int> match(l.axes.size(), -1), from(r.axes.size(), -1);
    for (int i = 0; i < l.rank(); ++i)
      for (int j = 0; j < r.rank(); ++j)
        if (match[static_cast<size_t>(i)] < 0 && from[static_cast<size_t>(j)] < 0 && l.axis(i).size == r.axis(j).size) {
          match[static_cast<size_t>(i)] = j;
          from[static_cast<size_t>(j)] = i;
        }
    std::vector<int> summed, left(l.axes.size()), right(r.axes.size());
    int out = 0;
    for (int i = 0; i < l.rank(); ++i) {
      if (match[static_cast<size_t>(i)] >= 0 && below(3) > 0)
        summed.push_back(i);
      else
        left[static_cast<size_t>(i)] = out++;
    }
    if (summed.empty()) return {};
    for (int j = 0; j < r.rank(); ++j)
      if (from[static_cast<size_t>(j)] < 0) right[static_cast<size_t>(j)] = out++;
    int label = out;
    for (int i : summed) left[static_cast<size_t>(i)] = label++;
    for (int j = 0; j < r.rank(); ++j)
      if (from[static_cast<size_t>(j)] >= 0) right[static_cast<size_t>(j)] = left[static_cast<size_t>(from[static_cast<size_t>(j)])];
    AxisList left_labels, right_labels;
    for (int v : left) left_labels.push_back(v);
    for (int v : right) right_labels.push_back(v);
    return build_.contract(x, y, left_labels, right_labels, out);
  }
  NodeId view(NodeId x) {
    const Type type = build_.type(x);
    const int rank = type.rank();
    switch (below(6)) {
      case 0:
        return build_.permute(x, shuffled(rank));
      case 1: {
        std::vector<Axis> axes = type.axes;
        const int at = below(rank + 1);
        axes.insert(axes.begin() + at, random_axis());
        AxisList map;
        for (int i = 0; i < rank; ++i) map.push_back(i < at ? i : i + 1);
        return build_.broadcast(x, map, axes);
      }
      case 2:
        return build_.merge(build_.split(x, type_counts(rank), type.axes), type_counts(rank), type.axes);
      case 3:
        return rank > 0 ? build_.slice(x, 0, type.axis(0).size.is_one() ? Poly(0) : Poly(1), Poly(1)) : NodeId{};
      case 4:
        return rank > 0 ? build_.pad(x, std::vector<Poly>(type.axes.size(), Poly(1)), std::vector<Poly>(type.axes.size()), Poly(0))
                        : NodeId{};
      default:
        return build_.rename(x, renamed(type.axes));
    }
  }
  static std::vector<Axis> renamed(std::vector<Axis> axes) {
    for (Axis& axis : axes) axis.name = "renamed";
    return axes;
  }
  static AxisList type_counts(int rank) {
    AxisList counts;
    for (int i = 0; i < rank; ++i) counts.push_back(1);
    return counts;
  }
  NodeId step() {
    constexpr MapFn kUnary[] = {MapFn::neg, MapFn::tanh, MapFn::relu, MapFn::sigmoid, MapFn::abs, MapFn::gelu};
    constexpr MapFn kBinary[] = {MapFn::add, MapFn::sub, MapFn::mul, MapFn::maximum, MapFn::add, MapFn::mul};
    const NodeId x = any();
    const int rank = build_.type(x).rank();
    switch (below(9)) {
      case 0:
        return build_.map(kUnary[below(6)], {x});
      case 1:
        return binary(kBinary[below(6)], x, any());
      case 2:
        return build_.map(kBinary[below(3)], {x, number()});
      case 3:
        return build_.map(MapFn::mul, {build_.map(MapFn::neg, {x}), number()});
      case 4:
        return build_.map(MapFn::div, {x, build_.constant(Poly(1 + below(3)))});
      case 5:
        return rank > 0 ? build_.reduce(below(4) == 0 ? ReduceFn::max : ReduceFn::sum, x, {below(rank)}) : NodeId{};
      case 6:
        return contract(x, any());
      case 7:
        return rank > 0 ? build_.softmax(x, below(rank)) : NodeId{};
      default:
        return view(x);
    }
  }

  Builder build_{graph};
  std::mt19937_64 random_;
  std::vector<NodeId> values_;
};

uint64_t work(const Graph& graph, const InterpretResult& result) {
  return count_phase(graph, result, Phase::forward).total() + count_phase(graph, result, Phase::backward).total();
}

void check_near(const Tensor& x, const Tensor& y) {
  REQUIRE(x.shape == y.shape);
  for (size_t i = 0; i < x.reals.size(); ++i) CHECK(x.reals[i] == doctest::Approx(y.reals[i]).epsilon(1e-7));
}

TEST_CASE("random graphs survive simplification") {
  for (uint64_t seed = 1; seed <= 400; ++seed) {
    CAPTURE(seed);
    const Graph graph = RandomGraph(seed).graph;
    for (const std::string& problem : verify(graph)) MESSAGE(problem);
    REQUIRE(verify(graph).empty());
    const Graph simple = simplify(graph, Roots::training), again = simplify(simple, Roots::training);
    REQUIRE(verify(simple).empty());
    REQUIRE(again.size() == simple.size());
    for (uint32_t i = 0; i < simple.size(); ++i) REQUIRE(simple.nodes[i].operands == again.nodes[i].operands);
    const TensorMap params = random_params(graph, -1, 1), inputs = random_inputs(graph, kDims, seed);
    const InterpretResult raw = interpret(graph, kDims, inputs, params, {}), result = interpret(simple, kDims, inputs, params, {});
    check_near(*raw.loss, *result.loss);
    check_near(raw.outputs[0].second, result.outputs[0].second);
    for (const Update& gradient : graph.gradients) {
      const Name path = graph[gradient.target].as<ParamAttr>().path;
      check_near(raw.gradients.at(path), result.gradients.at(path));
    }
    CHECK(work(simple, result) <= work(graph, raw));
    for (const GradientError& e : check_gradients(graph, kDims, inputs, params, {}, {.elements = 4})) CHECK(e.error < 1e-5);
  }
}

}  // namespace
}  // namespace einc::test
