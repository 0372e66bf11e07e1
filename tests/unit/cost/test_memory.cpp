// SPDX-License-Identifier: Apache-2.0
// Memory rules: saved activations and layouts.
#include <doctest/doctest.h>

#include "compiler/cost/layout.h"
#include "compiler/cost/memory.h"
#include "compiler/precision/assign.h"
#include "tests/unit/cost/two_layer.h"

using namespace einc;
using einc::test::two_layer;

namespace {

MemoryFormulas formulas(const Graph& graph) {
  return memory_formulas(graph, Sizes(graph), saved_activations(graph, constant_nodes(graph)));
}

}  // namespace

TEST_CASE("A17: what the two layers save") {
  const Graph trained = assign_precision(two_layer().graph);
  CHECK(formulas(trained).saved_activations.str() == "8*B*D + 4*B*K");  // x, h1, h2
  CHECK(formulas(trained).saved_activations.evaluate(Bindings{{"B", 1024}, {"D", 256}, {"K", 64}})->str() == "2359296");
  const Graph frozen = assign_precision(two_layer({.train_w1 = false}).graph);
  CHECK(formulas(frozen).saved_activations.str() == "4*B*D + 4*B*K");  // h1, h2
  CHECK(formulas(frozen).gradients.str() == "4*D*K");
  CHECK(formulas(trained).parameters.str() == "4*D^2 + 4*D*K");
  CHECK(formulas(trained).inputs.str() == "4*B*D");
}

TEST_CASE("views count as their base; constants, casts of params and states are left out") {
  Graph g;
  Builder b(g);
  const Poly n = Poly::dim("n"), m = Poly::dim("m");
  const NodeId x = b.input("x", Type{DType::f32, {{"n", n}, {"m", m}}});
  const NodeId w = b.param({"w", {}, false}, Type{DType::f32, {{"n", n}, {"m", m}}});
  const NodeId state = b.state({"s", {}, StateRole::user}, Type{DType::f32, {{"n", n}, {"m", m}}});
  const NodeId mask = b.map(MapFn::less, {b.iota({"n", n}), b.constant(Poly(3), DType::i32)});
  const NodeId low = b.cast(w, DType::bf16);
  const NodeId t = b.permute(x, {1, 0});
  b.origin.phase = Phase::backward;
  const NodeId top = b.slice(t, 0, Poly(0), Poly(1));
  g.outputs.push_back({"a", b.map(MapFn::exp, {top})});
  g.outputs.push_back({"b", b.map(MapFn::mul, {t, b.permute(low, {1, 0})})});
  g.outputs.push_back({"c", b.map(MapFn::neg, {state})});
  g.outputs.push_back({"d", b.cast(mask, DType::f32)});
  CHECK(saved_activations(g, constant_nodes(g)) == std::vector<NodeId>{x});
}

TEST_CASE("layouts: which merges are copies") {
  Graph g;
  Builder b(g);
  const Poly n = Poly::dim("n"), h = Poly::dim("h"), d = Poly::dim("d");
  const NodeId x = b.input("x", Type{DType::f32, {{"n", n}, {"h", h}, {"d", d}}});
  const NodeId together = b.merge(x, {1, 2}, {{"n", n}, {"(h d)", h * d}});
  const NodeId back = b.split(together, {1, 2}, {{"n", n}, {"h", h}, {"d", d}});
  const NodeId turned = b.permute(back, {1, 0, 2});
  const NodeId apart = b.merge(turned, {1, 2}, {{"h", h}, {"(n d)", n * d}});
  const NodeId after = b.permute(apart, {1, 0});
  const NodeId wide = b.broadcast(x, {0, 1, 3}, {{"n", n}, {"h", h}, {"r", Poly(4)}, {"d", d}});
  const NodeId repeated = b.merge(wide, {1, 2, 1}, {{"n", n}, {"(h r)", Poly(4) * h}, {"d", d}});
  const NodeId unit = b.merge(turned, {1, 1, 0, 1}, {{"h", h}, {"n", n}, {"", Poly(1)}, {"d", d}});
  const Layouts layouts = analyse_layouts(g);
  for (NodeId view : {together, back, turned, after, wide, unit}) CHECK_FALSE(layouts.copies[view.index]);
  for (NodeId copy : {apart, repeated}) CHECK(layouts.copies[copy.index]);
  CHECK(layouts.buffer[turned.index] == x);
  CHECK(layouts.buffer[after.index] == apart);
  CHECK(copy_reason(g, layouts, apart) == "merging (n d): the axes are not adjacent in memory");
  CHECK(view_base(g, after) == x);
}
