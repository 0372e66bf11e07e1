// Memory rules: saved activations, layouts, and the plan's own invariants.
#include <doctest/doctest.h>

#include "compiler/cost/memory.h"
#include "compiler/cost/plan.h"
#include "compiler/lower/arena.h"
#include "compiler/precision/assign.h"
#include "tests/unit/cost/two_layer.h"

using namespace einc;
using einc::test::two_layer;

namespace {

MemoryFormulas formulas(const Graph& graph) {
  return memory_formulas(graph, Sizes(graph), saved_activations(graph, constant_nodes(graph)));
}

MemoryPlan plan(const Graph& graph, PlanMode mode, const Bindings& given = {}) {
  auto result = plan_memory(graph, Sizes(graph), analyse_layouts(graph), constant_nodes(graph), graph.dims.bind(given).values, mode);
  REQUIRE(result);
  return *result;
}

// Buffers that live at the same time lie apart; a shared one starts where the one it replaces ends.
void check_apart(const Graph& graph, const MemoryPlan& plan) {
  auto in_arena = [&](uint32_t i) { return plan.placements[i].region == Region::arena || plan.placements[i].region == Region::shared; };
  int clashes = 0;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (!in_arena(i)) continue;
    const Placement& a = plan.placements[i];
    CHECK(Rational(a.offset + a.bytes) <= plan.arena);
    CHECK(a.offset % kArenaAlignment == 0);
    for (uint32_t j = i + 1; j < graph.size(); ++j) {
      if (!in_arena(j)) continue;
      const Placement& b = plan.placements[j];
      const bool overlap = a.offset < b.offset + b.bytes && b.offset < a.offset + a.bytes;
      const bool handed_over = b.region == Region::shared && a.last == b.first;
      if (overlap && b.first <= a.last && !handed_over) ++clashes;
    }
  }
  CHECK(clashes == 0);
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

TEST_CASE("the arena reuses and merges free intervals") {
  Arena arena;
  const int64_t a = arena.allocate(128), b = arena.allocate(64), c = arena.allocate(128);
  CHECK(a == 0);
  CHECK(b == 128);
  CHECK(c == 192);
  arena.release(a, 128);
  arena.release(b, 64);
  CHECK(arena.allocate(192) == 0);
  arena.release(c, 128);
  CHECK(arena.allocate(256) == 192);  // the free end grows
  CHECK(arena.size() == 448);
}

TEST_CASE("the plan of two layers") {
  const Graph g = assign_precision(two_layer().graph);
  const MemoryPlan training = plan(g, PlanMode::training);
  check_apart(g, training);
  const int64_t B = 1024, D = 256, K = 64;
  CHECK(training.parameters == Rational(4 * (D * D + D * K)));
  CHECK(training.gradients == training.parameters);
  CHECK(training.inputs == Rational(4 * B * D));
  CHECK(training.saved == Rational(4 * (B * D + B * K)));  // h1, h2: x is an input
  CHECK(training.peak() == training.arena + training.parameters + training.gradients + training.inputs);
  // Without grad nothing is kept: h1, h2 and its squares (in place), the sum.
  Graph inference = two_layer().graph;
  inference.outputs.push_back({"loss", inference.loss});
  const MemoryPlan forward = plan(assign_precision(inference), PlanMode::inference);
  CHECK(forward.gradients.is_zero());
  CHECK(forward.arena == Rational(4 * (B * D + B * K)));
}

TEST_CASE("updates take their target's place when nothing reads the old value later") {
  const Graph g = assign_precision(two_layer().graph);
  const MemoryPlan p = plan(g, PlanMode::training);
  for (const Update& update : g.updates) CHECK(p.placements[update.value.index].region == Region::in_place);

  Graph late;
  Builder b(late);
  const NodeId s = b.state({"s", {}, StateRole::user}, Type{DType::f32, {{"n", Poly(100)}}});
  const NodeId next = b.map(MapFn::add, {s, b.constant(Poly(1), DType::f32)});
  late.updates.push_back({s, next});
  late.outputs.push_back({"old", s});  // the value at the start of the run
  CHECK(plan(late, PlanMode::training).placements[next.index].region == Region::arena);
}

TEST_CASE("plans of long chains reuse two buffers") {
  Graph g;
  Builder b(g);
  const Poly n(1000);
  NodeId x = b.input("x", Type{DType::f32, {{"n", n}, {"n", n}}});
  for (int i = 0; i < 50; ++i) x = b.contract(x, x, {0, 2}, {2, 1}, 2);
  g.outputs.push_back({"y", x});
  const MemoryPlan p = plan(g, PlanMode::inference);
  check_apart(g, p);
  CHECK(p.arena == Rational(2 * 4000000));
}

TEST_CASE("temporaries of updates are released: many parameters need no more than one") {
  auto arena_of = [](int params) {
    Graph g;
    Builder b(g);
    b.origin.phase = Phase::optimizer;
    for (int i = 0; i < params; ++i) {
      const NodeId w = b.param({Name("w." + std::to_string(i)), {}, false}, Type{DType::f32, {{"n", Poly(1000)}}});
      const NodeId scaled = b.map(MapFn::mul, {b.map(MapFn::exp, {w}), w});
      g.updates.push_back({w, b.map(MapFn::sub, {w, scaled})});
    }
    return plan(g, PlanMode::training).arena;
  };
  CHECK(arena_of(1) == Rational(4032));  // 4000 bytes, aligned
  CHECK(arena_of(10) == arena_of(1));
}
