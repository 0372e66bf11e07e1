// SPDX-License-Identifier: Apache-2.0
// Two linear layers and a mean of squares, C03 to C09 of the accounting cases: which gradients are built, and what the
// simplified step costs.
#include <doctest/doctest.h>

#include "compiler/autodiff/differentiate.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/graph_counts.h"

namespace einc {
namespace {

using test::count_flops;
using test::FlopCounts;
using test::tensor;

struct TwoLayers {
  Graph graph;
  Builder build{graph};
  NodeId x, w1, w2, h1, h2, loss;

  TwoLayers() {
    x = build.input("x", tensor({"B", "D"}));
    w1 = build.param({"w1", {}}, Type{DType::real, {{"D", Poly::dim("D")}, {"E", Poly::dim("D")}}});
    w2 = build.param({"w2", {}}, Type{DType::real, {{"E", Poly::dim("D")}, {"K", Poly::dim("K")}}});
    h1 = build.contract(x, w1, {0, 2}, {2, 1}, 2);
    h2 = build.contract(h1, w2, {0, 2}, {2, 1}, 2);
    const NodeId square = build.map(MapFn::pow, {h2, build.constant(Poly(2))});
    const NodeId sum = build.reduce(ReduceFn::sum, square, {0, 1});
    loss = build.map(MapFn::mul, {sum, build.constant(divide(Poly(1), Poly::dim("B") * Poly::dim("K")))});
  }

  Graph step(std::vector<NodeId> wrt) {
    graph.loss = loss;
    const auto gradients = differentiate(build, loss, wrt);
    for (size_t i = 0; i < wrt.size(); ++i) graph.gradients.push_back({wrt[i], gradients[i]});
    return simplify(graph, Roots::training);
  }
};

const Poly B = Poly::dim("B"), D = Poly::dim("D"), K = Poly::dim("K");

TEST_CASE("C03 C04 C07: backward of two layers, x without gradient") {
  TwoLayers m;
  const Graph step = m.step({m.w1, m.w2});
  const FlopCounts forward = count_flops(step, Phase::forward), backward = count_flops(step, Phase::backward);
  CHECK(forward.contraction == 2 * B * D * D + 2 * B * D * K);
  CHECK(forward.elementwise == B * K + 1);
  CHECK(forward.reduction == B * K);
  CHECK(backward.contraction == 2 * B * D * D + 4 * B * D * K);
  CHECK(backward.elementwise == B * K);
  CHECK(backward.reduction == Poly(0));
}

TEST_CASE("C05: the gradient of x when asked for") {
  TwoLayers m;
  const Graph step = m.step({m.w1, m.w2, m.x});
  CHECK(count_flops(step, Phase::backward).contraction == 4 * B * D * D + 4 * B * D * K);
}

TEST_CASE("C09: w1 frozen") {
  TwoLayers m;
  const Graph step = m.step({m.w2});
  CHECK(count_flops(step, Phase::backward).contraction == 2 * B * D * K);
}

TEST_CASE("gradients have the types of what they are gradients of") {
  TwoLayers m;
  const NodeId wrt[] = {m.w1, m.h1, m.h2, m.loss, m.x};
  const auto gradients = differentiate(m.build, m.loss, wrt);
  for (size_t i = 0; i < 5; ++i) {
    REQUIRE(gradients[i].valid());
    CHECK(m.graph.type(gradients[i]) == m.graph.type(wrt[i]));
    CHECK(m.graph[gradients[i]].origin.phase == Phase::backward);
  }
}

TEST_CASE("what y does not depend on has no gradient, and none is built") {
  TwoLayers m;
  const NodeId other = m.build.param({"other", {}}, tensor({"B"}));
  const uint32_t size = m.graph.size();
  const NodeId wrt[] = {other};
  CHECK(!differentiate(m.build, m.loss, wrt)[0].valid());
  CHECK(m.graph.size() == size);
}

TEST_CASE("stop_gradient and integers pass none") {
  Graph graph;
  Builder build(graph);
  const NodeId x = build.input("x", tensor({"B"}));
  const NodeId through = build.map(MapFn::mul, {build.stop_gradient(x), build.cast(build.cast(x, DType::i32), DType::real)});
  const NodeId wrt[] = {x};
  CHECK(!differentiate(build, build.reduce(ReduceFn::sum, through, {0}), wrt)[0].valid());
}

TEST_CASE("gradient nodes carry the forward node's place and the operand's label") {
  TwoLayers m;
  m.graph[m.h1].origin.label = "hidden";
  m.graph[m.h2].origin.module = "head";
  m.graph[m.h2].origin.location = {"model.ein", 7, 3, 9};
  m.graph[m.h2].origin.loop_context = 0;
  const NodeId wrt[] = {m.h1};
  m.build.origin.label = "untouched";
  const NodeId gradient = differentiate(m.build, m.loss, wrt)[0];
  CHECK(m.graph[gradient].origin.label == Name("d hidden"));
  CHECK(m.graph[gradient].origin.module == Name("head"));
  CHECK(m.graph[gradient].origin.location.line == 7);
  CHECK(m.build.origin.label == Name("untouched"));
}

TEST_CASE("a chain of N contractions is differentiated with O(N) contractions") {
  Graph graph;
  Builder build(graph);
  const auto matrix = [&](int i) {
    const std::string row = "d" + std::to_string(i), column = "d" + std::to_string(i + 1);
    return build.param({Name("w" + std::to_string(i)), {}}, Type{DType::real, {{row, Poly::dim(row)}, {column, Poly::dim(column)}}});
  };
  std::vector<NodeId> params{matrix(0)};
  NodeId product = params[0];
  const int n = 12;
  for (int i = 1; i < n; ++i) {
    params.push_back(matrix(i));
    product = build.contract(product, params.back(), {0, 2}, {2, 1}, 2);
  }
  graph.loss = build.reduce(ReduceFn::sum, build.map(MapFn::mul, {product, product}), {0, 1});
  const auto gradients = differentiate(build, graph.loss, params);
  for (size_t i = 0; i < params.size(); ++i) graph.gradients.push_back({params[i], gradients[i]});
  CHECK(test::count_ops(simplify(graph, Roots::training), Op::contract) == (n - 1) + 2 * (n - 1));
}

TEST_CASE("pieces of one packed projection come back as one concat, with no added zeros") {
  Graph graph;
  Builder build(graph);
  const NodeId packed = build.param({"qkv", {}}, Type{DType::real, {{"three", Poly(3)}, {"d", Poly::dim("d")}}});
  NodeId parts[3];
  for (int i = 0; i < 3; ++i) parts[i] = build.drop_unit(build.slice(packed, 0, Poly(i), Poly(1)), 0);
  const NodeId product = build.map(MapFn::mul, {build.map(MapFn::mul, {parts[0], parts[2]}), parts[1]});
  graph.loss = build.reduce(ReduceFn::sum, product, {0});
  const NodeId wrt[] = {packed};
  graph.gradients.push_back({packed, differentiate(build, graph.loss, wrt)[0]});
  const Graph step = simplify(graph, Roots::training);
  CHECK(test::count_ops(step, Op::concat) == 1);
  CHECK(test::count_ops(step, Op::pad) == 0);
  CHECK(test::count_maps(step, MapFn::add) == 0);
}

TEST_CASE("C13: the backward of a convolution costs the forward's contraction for each operand") {
  Graph graph;
  Builder build(graph);
  const Poly side = Poly::dim("Y") + 2;
  const NodeId x = build.input("x", Type{DType::real, {{"b", Poly::dim("b")}, {"y", side}, {"c", Poly::dim("c")}}});
  const NodeId w = build.param({"w", {}}, Type{DType::real, {{"ky", Poly(3)}, {"c", Poly::dim("c")}, {"o", Poly::dim("o")}}});
  const NodeId windows = build.window(x, 1, {Poly(1), Poly(1)}, {{"y", Poly::dim("Y")}, {"ky", Poly(3)}});
  const NodeId y = build.contract(windows, w, {0, 1, 3, 4}, {3, 4, 2}, 3);
  graph.loss = build.reduce(ReduceFn::sum, build.map(MapFn::mul, {y, y}), {0, 1, 2});
  const NodeId wrt[] = {x, w};
  const auto gradients = differentiate(build, graph.loss, wrt);
  graph.gradients = {{x, gradients[0]}, {w, gradients[1]}};
  const Graph step = simplify(graph, Roots::training);
  const Poly forward = count_flops(step, Phase::forward).contraction;
  CHECK(forward == 2 * Poly::dim("b") * Poly::dim("Y") * 3 * Poly::dim("c") * Poly::dim("o"));
  CHECK(count_flops(step, Phase::backward).contraction == 2 * forward);
  CHECK(test::count_ops(step, Op::fold) == 1);
}

TEST_CASE("C10: an expanded operand and a frozen weight") {
  Graph graph;
  Builder build(graph);
  const auto axes = [](std::initializer_list<int> sizes) {
    Type type;
    for (int s : sizes) type.axes.push_back({Name("a" + std::to_string(s)), Poly(s)});
    return type;
  };
  const NodeId a = build.param({"a", {}}, axes({4, 5})), p = build.input("p", axes({5, 6})), q = build.input("q", axes({7, 6, 7}));
  const NodeId product = build.contract(a, p, {0, 2}, {2, 1}, 2);
  const NodeId expanded = build.broadcast(product, {1, 2}, axes({7, 4, 6}).axes);
  const NodeId y = build.contract(expanded, q, {0, 1, 3}, {0, 3, 2}, 3);
  graph.loss = build.reduce(ReduceFn::sum, y, {0, 1, 2});
  const NodeId wrt[] = {a};
  graph.gradients.push_back({a, differentiate(build, graph.loss, wrt)[0]});
  const Graph step = simplify(graph, Roots::training);
  CHECK(count_flops(step, Phase::forward).contraction == Poly(240 + 2352));
  CHECK(count_flops(step, Phase::backward).contraction == Poly(2352 + 240));
}

}  // namespace
}  // namespace einc
