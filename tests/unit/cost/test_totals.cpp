// SPDX-License-Identifier: Apache-2.0
// FLOP totals against the accounting facts' closed forms and numbers.
#include <doctest/doctest.h>

#include "compiler/cost/totals.h"
#include "tests/unit/cost/two_layer.h"

using namespace einc;
using einc::test::two_layer;

namespace {

FlopTotals totals(const Graph& graph) { return count_flops(graph, constant_nodes(graph)); }

std::string at(const Poly& p, int64_t b, int64_t d, int64_t k) { return p.evaluate(Bindings{{"B", b}, {"D", d}, {"K", k}})->str(); }

}  // namespace

TEST_CASE("C03, C04, C06, C07: two layers, x is data") {
  const FlopTotals t = totals(two_layer().graph);
  const Poly forward = t.of(Phase::forward, FlopClass::contraction), backward = t.of(Phase::backward, FlopClass::contraction);
  CHECK(forward.str() == "2*B*D^2 + 2*B*D*K");
  CHECK(backward.str() == "2*B*D^2 + 4*B*D*K");
  CHECK(at(forward, 1024, 256, 64) == "167772160");
  CHECK(at(backward, 1024, 256, 64) == "201326592");
  CHECK(at(forward + backward, 1024, 256, 64) == "369098752");
  CHECK(at(forward, 16384, 32768, 8192) == "43980465111040");
  CHECK(at(backward, 16384, 32768, 8192) == "52776558133248");
  CHECK(at(forward + backward, 16384, 32768, 8192) == "96757023244288");
  CHECK(t.of(Phase::forward, FlopClass::elementwise).str() == "B*K + 1");  // squares, and one multiplication for the mean
  CHECK(t.of(Phase::forward, FlopClass::reduction).str() == "B*K");
  CHECK(t.of(Phase::backward, FlopClass::elementwise).str() == "B*K");
  CHECK(t.of(Phase::optimizer, FlopClass::elementwise).str() == "2*D^2 + 2*D*K");
}

TEST_CASE("C05: the data's gradient is asked for") {
  const FlopTotals t = totals(two_layer({.want_dx = true}).graph);
  CHECK(at(t.of(Phase::backward, FlopClass::contraction), 1024, 256, 64) == "335544320");
}

TEST_CASE("C09: w1 frozen: only dW2") {
  const FlopTotals t = totals(two_layer({.train_w1 = false}).graph);
  CHECK(t.of(Phase::backward, FlopClass::contraction).str() == "2*B*D*K");
}

TEST_CASE("one node of each kind") {
  Graph g;
  Builder b(g);
  const Poly n = Poly::dim("n"), m = Poly::dim("m");
  const NodeId x = b.input("x", Type{DType::f32, {{"n", n}, {"m", m}}});
  const NodeId ids = b.input("ids", Type{DType::i32, {{"n", n}}});
  auto flops = [&](NodeId id) { return flop_cost(g, Sizes(g), id).flops.str(); };
  auto kind = [&](NodeId id) { return flop_cost(g, Sizes(g), id).kind; };
  CHECK(flops(b.map(MapFn::add, {x, x})) == "m*n");
  auto transcendental = [&](NodeId id) { return flop_cost(g, Sizes(g), id).transcendental; };
  CHECK(transcendental(b.map(MapFn::exp, {x})));
  CHECK_FALSE(transcendental(b.map(MapFn::sqrt, {x})));
  CHECK(flops(b.reduce(ReduceFn::max, x, {1})) == "m*n");
  CHECK(kind(b.reduce(ReduceFn::max, x, {1})) == FlopClass::reduction);
  CHECK(flops(b.cumulate(ReduceFn::sum, x, 0, Direction::forward)) == "m*n");
  CHECK(flops(b.arg_reduce(ReduceFn::max, x, 0)) == "m*n");
  CHECK(kind(b.top_k_index(x, 1, Poly(2))) == FlopClass::reduction);
  CHECK(flops(b.top_k_index(x, 1, Poly(2))) == "m*n");
  const NodeId rows = b.gather(x, ids, GatherAttr{0, {kNoAxis, 1}, {0}}, {{"n", n}, {"m", m}});
  CHECK(flops(rows) == "0");
  const NodeId added = b.scatter_add(rows, ids, GatherAttr{0, {kNoAxis, 1}, {0}}, {{"v", Poly::dim("v")}, {"m", m}});
  CHECK(flops(added) == "m*n");
  CHECK(kind(added) == FlopClass::other);
  for (const Op op : {Op::scatter_max, Op::scatter_min}) {
    const NodeId kept = b.scatter_extreme(op, rows, ids, GatherAttr{0, {kNoAxis, 1}, {0}}, {{"v", Poly::dim("v")}, {"m", m}});
    CHECK(flops(kept) == "m*n");
    CHECK(kind(kept) == FlopClass::other);
  }
  CHECK(flops(b.cumulate(ReduceFn::logsumexp, x, 0, Direction::forward)) == "m*n");
  CHECK(flops(b.map(MapFn::clamp, {x, x, x})) == "m*n");
  CHECK(transcendental(b.map(MapFn::lgamma, {x})));
  CHECK_FALSE(transcendental(b.map(MapFn::floor, {x})));
  CHECK(flops(b.random({RandomKind::gumbel, "r", 1}, Type{DType::f32, {{"n", n}}})) == "0");
  const NodeId windows = b.window(x, 1, {Poly(1), Poly(1)}, {{"p", m - Poly(2)}, {"k", Poly(3)}});
  CHECK(flops(windows) == "0");
  CHECK(flops(b.fold(windows, 1, {Poly(1), Poly(1)}, {"m", m})) == "3*m*n - 6*n");
  for (NodeId free : {b.permute(x, {1, 0}), b.cast(x, DType::bf16), b.pad(x, {Poly(1), Poly(0)}, {Poly(1), Poly(0)}, Poly(0)),
                      b.iota({"n", n}), b.random({RandomKind::normal, "r", 1}, Type{DType::f32, {{"n", n}}})})
    CHECK(flops(free) == "0");
}

TEST_CASE("what depends on no input counts nothing") {
  Graph g;
  Builder b(g);
  const Poly n = Poly::dim("n");
  const NodeId i = b.iota({"n", n});
  const NodeId square = b.map(MapFn::mul, {i, i});
  const NodeId x = b.input("x", Type{DType::f32, {{"n", n}}});
  g.outputs.push_back({"y", b.map(MapFn::mul, {x, square})});
  CHECK(totals(g).step().str() == "n");
}
