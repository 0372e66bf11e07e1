// SPDX-License-Identifier: Apache-2.0
// The passes around the rewrite rules: expansion, merging, dead nodes, folding, and the whole at the size of a large model.
#include <doctest/doctest.h>

#include <cmath>

#include "compiler/ir/build.h"
#include "compiler/simplify/common.h"
#include "compiler/simplify/dead.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/fold.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/graph_counts.h"

namespace einc {
namespace {

using test::count_maps;
using test::count_ops;
using test::tensor;

TEST_CASE("softmax is max, sub, exp, sum, div; logsumexp shares the first four") {
  Graph graph;
  Builder build(graph);
  const NodeId x = build.input("x", tensor({"a", "b"}));
  graph.outputs = {{"p", build.softmax(x, 1)}, {"l", build.logsumexp(x, {1})}};
  graph[graph.outputs[0].node].origin.label = "probabilities";
  const Graph g = simplify(graph, Roots::training);
  CHECK(count_ops(g, Op::reduce) == 2);
  CHECK(count_ops(g, Op::map) == 5);
  CHECK(count_maps(g, MapFn::exp) == 1);
  CHECK(g[g.outputs[0].node].origin.label == Name("probabilities"));
}

TEST_CASE("dropout draws one mask for value and gradient, and is gone in inference") {
  Graph graph;
  Builder build(graph);
  const NodeId x = build.input("x", tensor({"a"}));
  graph.outputs = {{"y", build.dropout(x, 0.25, "drop")}, {"z", build.dropout(build.map(MapFn::exp, {x}), 0.25, "drop")}};
  const Graph training = simplify(graph, Roots::training), inference = simplify(graph, Roots::inference);
  CHECK(count_ops(training, Op::random) == 1);
  CHECK(count_maps(training, MapFn::where) == 2);
  CHECK(count_ops(inference, Op::random) == 0);
  CHECK(inference.outputs[0].node == NodeId{0});
}

TEST_CASE("an evaluation keeps the loss alone, without dropout") {
  Graph graph;
  Builder build(graph);
  const NodeId x = build.param({Name("x"), {}}, tensor({"a"})), kept = build.state({Name("kept"), {}}, tensor({"a"}));
  graph.outputs = {{"y", build.map(MapFn::exp, {x})}};
  graph.loss = build.reduce(ReduceFn::sum, build.dropout(x, 0.25, "drop"), {0});
  graph.updates = {{kept, x}};
  graph.gradients = {{x, x}};
  const Graph evaluation = simplify(graph, Roots::evaluation);
  CHECK(evaluation.outputs.empty());
  CHECK(evaluation.updates.empty());
  CHECK(evaluation.gradients.empty());
  CHECK(count_ops(evaluation, Op::random) == 0);
  CHECK(count_maps(evaluation, MapFn::exp) == 0);
  CHECK(evaluation[evaluation.loss].operands[0] == NodeId{0});
}

TEST_CASE("equal nodes merge across phases, operand order and label numbering; names do not matter") {
  Graph graph;
  Builder build(graph);
  const NodeId x = build.input("x", tensor({"a", "b"})), w = build.input("w", tensor({"b", "c", "d"}));
  build.origin.phase = Phase::backward;
  const NodeId wide = build.input("wide", tensor({"a", "b", "c"}));
  const NodeId p = build.contract(w, wide, {3, 4, 1}, {0, 3, 4}, 2);
  build.origin.phase = Phase::forward;
  build.origin.label = "y";
  const NodeId q = build.contract(wide, w, {0, 2, 3}, {2, 3, 1}, 2);
  build.origin.label = {};
  const NodeId sum = build.map(MapFn::add, {p, build.rename(q, {{"k", Poly::dim("a")}, {"l", Poly::dim("d")}})});
  const NodeId other = build.map(MapFn::add, {q, p});
  graph.outputs = {{"p", p}, {"q", q}, {"sum", sum}, {"other", other}, {"x", x}};
  const Merged merged = merge_common(graph);
  CHECK(merged.count == 1);
  CHECK(merged.graph.outputs[0].node == merged.graph.outputs[1].node);
  CHECK(merged.graph[merged.graph.outputs[0].node].origin.phase == Phase::forward);
  CHECK(merged.graph[merged.graph.outputs[0].node].origin.label == Name("y"));
}

TEST_CASE("streams, dtypes and policies keep nodes apart") {
  Graph graph;
  Builder build(graph);
  const auto draw = [&](const char* stream) { return build.random({RandomKind::normal, stream}, tensor({"a"})); };
  const NodeId one = draw("one"), two = draw("two"), again = draw("one");
  const NodeId low = build.cast(one, DType::bf16), high = build.cast(one, DType::f32);
  build.origin.policy = Policy::f32;
  const NodeId kept = build.cast(one, DType::bf16);
  graph.outputs = {{"a", one}, {"b", two}, {"c", again}, {"d", low}, {"e", high}, {"f", kept}};
  CHECK(merge_common(graph).count == 1);
}

TEST_CASE("dead nodes go, the interface stays") {
  Graph graph;
  Builder build(graph);
  const NodeId x = build.input("x", tensor({"a"}));
  const NodeId unused = build.param({"unused", {}}, tensor({"a"}));
  const NodeId moment = build.state({"m", {}, StateRole::moment}, tensor({"a"}));
  const NodeId idle = build.state({"idle", {}, StateRole::moment}, tensor({"a"}));
  const NodeId cache = build.state({"cache", {}, StateRole::user}, tensor({"a"}));
  build.map(MapFn::exp, {x});
  const NodeId y = build.map(MapFn::neg, {x});
  graph.outputs = {{"y", y}};
  graph.updates = {{cache, y},
                   {moment, build.map(MapFn::sqrt, {x})},
                   {idle, build.map(MapFn::add, {idle, x})},
                   {unused, build.map(MapFn::sin, {moment})}};
  graph.gradients = {{unused, build.map(MapFn::cos, {x})}};
  const Graph training = remove_dead(graph, Roots::training), inference = remove_dead(graph, Roots::inference);
  CHECK(training.size() == 4 + 4);
  CHECK(inference.size() == 3 + 1);
  CHECK(inference.updates.size() == 1);
  CHECK(inference[inference.updates[0].value].as<MapAttr>().fn == MapFn::neg);
}

TEST_CASE("constants fold exactly in the dims") {
  const Poly B = Poly::dim("B"), K = Poly::dim("K");
  const auto fold = [](MapFn fn, std::vector<ScalarValue> v, DType dtype = DType::real) { return fold_constants(fn, v, dtype); };
  CHECK(fold(MapFn::mul, {2.0, divide(Poly(1), B * K)}) == ScalarValue(divide(Poly(2), B * K)));
  CHECK(fold(MapFn::div, {Poly(1), Poly(3)}) == ScalarValue(Poly(Rational(1, 3))));
  CHECK(fold(MapFn::sqrt, {Poly(2)}) == ScalarValue(std::sqrt(2.0)));
  CHECK(fold(MapFn::sqrt, {Poly(4)}) == ScalarValue(Poly(2)));
  CHECK(!fold(MapFn::sqrt, {B}));
  CHECK(!fold(MapFn::mul, {0.1, B}));
  CHECK(fold(MapFn::add, {Poly(2147483647), Poly(1)}, DType::i64) == ScalarValue(Poly(2147483648)));
  CHECK(!fold(MapFn::add, {Poly(2147483647), Poly(1)}, DType::i32));
  CHECK(!fold(MapFn::add, {Poly(1), Poly(2)}, DType::bf16));
  CHECK(fold(MapFn::less, {Poly(1), 1.5}, DType::boolean) == ScalarValue(Poly(1)));
  const int64_t odd = 9007199254740993;  // 2^53 + 1, which is no double
  CHECK(fold(MapFn::equal, {Poly(odd), Poly(odd - 1)}, DType::boolean) == ScalarValue(Poly(0)));
  CHECK(fold(MapFn::greater, {Poly(odd), static_cast<double>(odd - 1)}, DType::boolean) == ScalarValue(Poly(1)));
  CHECK(fold(MapFn::maximum, {Poly(odd), Poly(1)}, DType::i64) == ScalarValue(Poly(odd)));
  CHECK(fold(MapFn::abs, {Poly(-odd)}, DType::i64) == ScalarValue(Poly(odd)));
}

// mpmath: x*erfc(-x/sqrt(2))/2, 1/(1+exp(-x)), log1p(exp(x)), x/(1+exp(-x)).
TEST_CASE("folded functions keep their digits where simple formulas cancel") {
  const std::tuple<MapFn, double, double> rows[] = {
      {MapFn::gelu, -10, -7.619853024160526066e-23},     {MapFn::gelu, -4, -0.00012668496733247968502},
      {MapFn::gelu, 3, 2.9959503059051097164},           {MapFn::sigmoid, -40, 4.2483542552915889773e-18},
      {MapFn::softplus, -40, 4.2483542552915889863e-18}, {MapFn::silu, -40, -1.6993417021166355909e-16}};
  for (const auto& [fn, x, wanted] : rows) {
    CAPTURE(to_string(fn));
    const ScalarValue operand = x;
    const auto folded = fold_constants(fn, std::span(&operand, 1), DType::f64);
    REQUIRE(folded);
    CHECK(std::fabs(std::get<double>(*folded) / wanted - 1) < 2e-14);
  }
}

TEST_CASE("outputs keep their axis names") {
  Graph graph;
  Builder build(graph);
  const NodeId x = build.input("x", tensor({"a", "b"}));
  graph.outputs = {{"x", x}, {"y", build.rename(x, {{"p", Poly::dim("a")}, {"q", Poly::dim("b")}})}};
  const Graph g = simplify(graph, Roots::training);
  CHECK(g.type(g.outputs[0].node).axis(0).name == Name("a"));
  CHECK(g.type(g.outputs[1].node).axis(0).name == Name("p"));
}

TEST_CASE("simplifying again changes nothing") {
  Graph graph;
  Builder build(graph);
  NodeId x = build.input("x", tensor({"a", "b"}));
  for (int i = 0; i < 5; ++i) x = build.map(MapFn::mul, {build.softmax(x, 1), build.map(MapFn::pow, {x, build.constant(Poly(2))})});
  graph.outputs = {{"y", x}};
  const Graph once = simplify(graph, Roots::training), twice = simplify(once, Roots::training);
  REQUIRE(once.size() == twice.size());
  for (uint32_t i = 0; i < once.size(); ++i) {
    CHECK(once.nodes[i].attr == twice.nodes[i].attr);
    CHECK(once.nodes[i].operands == twice.nodes[i].operands);
  }
}

}  // namespace
}  // namespace einc
