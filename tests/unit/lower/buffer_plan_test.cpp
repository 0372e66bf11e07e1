// SPDX-License-Identifier: Apache-2.0
// The arena, and the plan of buffers: what shares a place, what is computed in place, what is kept.
#include <doctest/doctest.h>

#include "compiler/fuse/form_graph.h"
#include "compiler/ir/build.h"
#include "compiler/lower/arena.h"
#include "compiler/precision/assign.h"
#include "tests/unit/cost/two_layer.h"

using namespace einc;
using einc::test::two_layer;

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
  const Bindings dims{{"B", 1024}, {"D", 256}, {"K", 64}};
  const FormedGraph training = form_graph(g, dims, RunMode::training);
  const int64_t B = 1024, D = 256, K = 64, parameters = 4 * (D * D + D * K);
  // h1, and the gradient of h2, which its kernel stores instead of it; x is an input.
  CHECK(training.plan.saved_bytes == 4 * (B * D + B * K));
  CHECK(training.plan.total_bytes == training.plan.arena_bytes + 2 * parameters + 4 * B * D);
  // Without grad nothing is kept: h1 and h2, then the loss in their place; the squares are never stored.
  Graph inference = two_layer().graph;
  inference.outputs.push_back({"loss", inference.loss});
  const Graph assigned = assign_precision(inference);
  CHECK(form_graph(assigned, dims, RunMode::inference).plan.arena_bytes == 4 * (B * D + B * K));
}

TEST_CASE("updates take their target's place when nothing reads the old value later") {
  const Graph g = assign_precision(two_layer().graph);
  const FormedGraph formed = form_graph(g, {{"B", 8}, {"D", 16}, {"K", 4}}, RunMode::training);
  for (const Update& update : g.updates) CHECK(formed.plan.buffers[update.value.index].place == BufferPlace::in_target);

  Graph late;
  Builder b(late);
  const NodeId s = b.state({"s", {}, StateRole::user}, Type{DType::f32, {{"n", Poly(100)}}});
  const NodeId next = b.map(MapFn::add, {s, b.constant(Poly(1), DType::f32)});
  late.updates.push_back({s, next});
  late.outputs.push_back({"old", b.map(MapFn::neg, {b.reduce(ReduceFn::sum, s, {0})})});
  // The reader of the old value comes first.
  CHECK(form_graph(late, {}, RunMode::training).plan.buffers[next.index].place == BufferPlace::in_target);
}

TEST_CASE("plans of long chains reuse two buffers") {
  Graph g;
  Builder b(g);
  const Poly n(1000);
  NodeId x = b.input("x", Type{DType::f32, {{"n", n}, {"n", n}}});
  for (int i = 0; i < 50; ++i) x = b.contract(x, x, {0, 2}, {2, 1}, 2);
  g.outputs.push_back({"y", x});
  CHECK(form_graph(g, {}, RunMode::inference).plan.arena_bytes == 2 * 4000000);
}

TEST_CASE("an elementwise result takes the place of an operand that ends there") {
  Graph g;
  Builder b(g);
  const Poly n(1000);
  const NodeId x = b.input("x", Type{DType::f32, {{"n", n}, {"n", n}}});
  const NodeId y = b.contract(x, x, {0, 2}, {2, 1}, 2);
  const NodeId z = b.contract(x, x, {2, 0}, {2, 1}, 2);
  g.outputs.push_back({"a", b.map(MapFn::mul, {b.permute(y, {1, 0}), z})});
  const FormedGraph formed = form_graph(g, {}, RunMode::inference);
  CHECK(formed.plan.arena_bytes <= 2 * 4000000);
}
