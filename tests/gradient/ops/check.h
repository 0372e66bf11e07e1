// SPDX-License-Identifier: Apache-2.0
// One gradient case: a function of a few params, differentiated once and twice, compared with finite differences, and
// compared again after simplification.
#pragma once
#include <doctest/doctest.h>

#include <functional>
#include <random>
#include <string>

#include "compiler/autodiff/differentiate.h"
#include "compiler/autodiff/gradient_check.h"
#include "compiler/ir/verify.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/graph_counts.h"

namespace einc::test {

enum class Orders { first, second };

// The params that cases use. Sizes: a = 2, b = 3, c = 4.
struct Params {
  Builder& build;
  NodeId x, y, v, s, cube, square, ids;  // [a b] [a b] [b] [] [a b c] [b b]; ids: i32 [a c] below 3
};
using Function = std::function<NodeId(const Params&)>;

struct GradientCase {
  std::string name;
  Function make;
  double lo = -2, hi = 2;  // params are uniform in between
  Orders orders = Orders::second;
};

inline const Bindings kDims{{"a", 2}, {"b", 3}, {"c", 4}};

inline NodeId weighted_sum(Builder& build, NodeId value, const std::string& name) {
  const Type& type = build.type(value);
  const NodeId weights = build.input(Name(name), Type{DType::real, type.axes});
  const NodeId product = build.map(MapFn::mul, {build.cast(value, DType::real), weights});
  return build.reduce(ReduceFn::sum, product, AxisList::range(build.type(product).rank()));
}

inline void minimize(Graph& graph, Builder& build, NodeId loss) {
  graph.loss = loss;
  graph.gradients.clear();
  std::vector<NodeId> params;
  for (uint32_t i = 0; i < graph.size(); ++i)
    if (graph.nodes[i].op == Op::param) params.push_back(NodeId{i});
  const auto gradients = differentiate(build, loss, params);
  for (size_t i = 0; i < params.size(); ++i)
    if (gradients[i].valid()) graph.gradients.push_back({params[i], gradients[i]});
}

inline TensorMap random_params(const Graph& graph, double lo, double hi) {
  std::mt19937_64 random(7);
  std::uniform_real_distribution<double> uniform(lo, hi);
  TensorMap params;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::param) continue;
    std::vector<int64_t> shape;
    for (const Axis& axis : node.type.axes) shape.push_back(*axis.size.evaluate_integer(kDims));
    Tensor tensor = Tensor::zeros(DType::real, shape);
    for (double& value : tensor.reals) value = uniform(random);
    params.emplace(node.as<ParamAttr>().path, tensor);
  }
  return params;
}

inline void check_close(const Tensor& a, const Tensor& b) {
  REQUIRE(a.shape == b.shape);
  for (size_t i = 0; i < a.reals.size(); ++i) CHECK(a.reals[i] == doctest::Approx(b.reals[i]).epsilon(1e-9));
}

// Loss and gradients: against finite differences, and the same after simplification.
inline void check_graph(const Graph& graph, double lo, double hi) {
  CHECK(verify(graph).empty());
  for (const std::string& problem : verify(graph)) MESSAGE(problem);
  const TensorMap params = random_params(graph, lo, hi), inputs = random_inputs(graph, kDims, 3);
  for (const GradientError& e : check_gradients(graph, kDims, inputs, params, {})) {
    CAPTURE(e.path.str());
    CAPTURE(e.position);
    CAPTURE(e.symbolic);
    CAPTURE(e.numeric);
    CHECK(e.error < 2e-6);
    CHECK(e.compared > 0);
  }
  const Graph simple = simplify(graph, Roots::training);
  CHECK(verify(simple).empty());
  for (const std::string& problem : verify(simple)) MESSAGE(problem);
  const InterpretResult raw = interpret(graph, kDims, inputs, params, {}), simplified = interpret(simple, kDims, inputs, params, {});
  check_close(*raw.loss, *simplified.loss);
  for (const Update& gradient : graph.gradients) {
    const Name path = graph[gradient.target].as<ParamAttr>().path;
    check_close(raw.gradients.at(path), simplified.gradients.at(path));
  }
}

inline void check_case(const GradientCase& test) {
  CAPTURE(test.name);
  Graph graph;
  for (const char* name : {"a", "b", "c"}) graph.dims.declare_free(name);
  Builder build(graph);
  const auto param = [&](const char* name, Type type) { return build.param({name, {}}, std::move(type)); };
  const Params p{build,
                 param("x", tensor({"a", "b"})),
                 param("y", tensor({"a", "b"})),
                 param("v", tensor({"b"})),
                 param("s", tensor({})),
                 param("cube", tensor({"a", "b", "c"})),
                 param("square", Type{DType::real, {{"b", Poly::dim("b")}, {"b", Poly::dim("b")}}}),
                 build.input("ids", tensor({"a", "c"}, DType::i32))};
  minimize(graph, build, weighted_sum(build, test.make(p), "weights"));
  REQUIRE(!graph.gradients.empty());
  check_graph(graph, test.lo, test.hi);
  if (test.orders == Orders::first) return;
  NodeId second;
  for (const Update& gradient : std::vector<Update>(graph.gradients)) {
    const NodeId term = weighted_sum(build, gradient.value, "weights of " + graph[gradient.target].as<ParamAttr>().path.str());
    second = second.valid() ? build.map(MapFn::add, {second, term}) : term;
  }
  minimize(graph, build, second);
  CAPTURE("second order");
  if (!graph.gradients.empty()) check_graph(graph, test.lo, test.hi);
}

}  // namespace einc::test
