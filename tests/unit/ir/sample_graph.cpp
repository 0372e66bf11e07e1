// SPDX-License-Identifier: Apache-2.0
#include "sample_graph.h"

#include <limits>
#include <memory>

namespace einc {
namespace {

Poly d(const char* name) { return Poly::dim(name); }
Axis axis(const char* name) { return {name, d(name)}; }

void declare(Graph& g) {
  g.name = "models/sample \"q\".ein";
  g.policy = Policy::bf16;
  g.dims.declare_default("batch", 2, 4);
  g.dims.declare_default("width", 6);
  g.dims.declare_free("seq", 1);
  g.dims.declare_derived("hidden", d("width") * Poly(4), 2);
  g.dims.require({ConditionKind::divides, d("width"), Poly(2), 7, "axis (h 2)\nof rearrange"});
  g.dims.require({ConditionKind::in_range, Poly(3), d("seq"), -1, "slice"});
  g.mesh.axes.push_back({"data", Poly(2)});
  g.loops.push_back({d("batch"), 2});
  g.loop_contexts.push_back({0, 0, 0});
  g.loop_contexts.push_back({1, 0, 1});
  g.plans.push_back({{"a.ein", 3, 4, 9}, "a b, b c, c d -> a d", "(0 1) 2", d("batch") * d("width") * Poly(2), "exact"});
}

// noise + one slice of x in each iteration, which collects twice that.
void add_scan(Builder& b, NodeId x, NodeId whole, NodeId noise) {
  auto body = std::make_shared<Graph>();
  body->dims = b.graph().dims;
  Builder inside(*body);
  inside.input("0", b.type(whole));
  Type row = b.type(x);
  row.axes.erase(row.axes.begin());
  const NodeId slice = inside.input("1", row);
  const NodeId carry = inside.state({"0", {}, StateRole::user}, b.type(noise));
  const NodeId operands[] = {carry, inside.reduce(ReduceFn::sum, slice, {0, 1})};
  const AxisList maps[] = {{0}, {}};
  const NodeId next = inside.map(MapFn::add, operands, maps, b.type(noise).axes, DType::real);
  const NodeId twice = inside.map(MapFn::add, {next, next});
  const NodeId collected = inside.state({"1", {}, StateRole::user}, b.type(noise));
  body->updates = {{carry, next}, {collected, twice}};
  const NodeId given[] = {whole, x, noise};
  const NodeId scan = b.scan(given, ScanAttr{body, d("batch"), 1, 1, Direction::reverse, 3});
  b.scan_result(scan, 0, "step");
  b.scan_result(scan, 1, "step");
}

}  // namespace

Graph sample_graph() {
  Graph g;
  declare(g);
  Builder b(g);
  const auto list = [](std::initializer_list<int> values) { return AxisList(values); };

  b.origin.location = {"models/sample.ein", 12, 3, 17};
  const NodeId x = b.input("x", {DType::real, {axis("batch"), axis("seq"), axis("width")}});
  const NodeId ids = b.input("ids", {DType::i32, {axis("batch"), axis("seq")}});
  const NodeId w = b.param({"h.0.w", {InitKind::normal, InitForm::root, {Poly(0), 0.02}}, false},
                           {DType::real, {axis("width"), {"hidden", d("width") * Poly(4)}}});
  const NodeId table = b.param({"table", {InitKind::zeros, InitForm::plain, {}}, true}, {DType::f16, {{"vocab", Poly(11)}, axis("width")}});
  const NodeId state = b.state({"t", {InitKind::constant, InitForm::plain, {d("batch")}}, StateRole::scalar}, {DType::i64, {}});

  b.origin.module = "h.0.attn";
  b.origin.label = "weird \x01\xc3\xa9 label";
  b.origin.loop_context = 2;
  b.origin.policy = Policy::f32;
  b.origin.pinned = true;
  const NodeId scale = b.constant(divide(Poly(1), d("width")));
  const NodeId tiny = b.constant(1e-5);
  b.constant(-std::numeric_limits<double>::infinity());
  b.constant(std::numeric_limits<double>::quiet_NaN(), DType::bf16);
  b.constant(Poly(-3), DType::i32);
  const NodeId scaled = b.map(MapFn::mul, {x, scale});
  b.origin = Origin{};
  b.iota({"width", d("width")});
  const NodeId noise = b.random({RandomKind::normal, "h.0 noise", 1}, {DType::real, {axis("batch")}});
  b.random({RandomKind::keep_mask, "drop", 0.9}, {DType::u8, {axis("batch")}});
  b.random({RandomKind::bits, "draw", 1}, {DType::i32, {axis("batch")}});
  b.random({RandomKind::gumbel, "draw", 1}, {DType::f64, {axis("batch")}});

  b.origin.phase = Phase::backward;
  const NodeId operands[] = {scaled, noise};
  const AxisList maps[] = {list({0, 1, 2}), list({0})};
  const NodeId sum = b.map(MapFn::add, operands, maps, g.type(scaled).axes, DType::real);
  const NodeId positive = b.map(MapFn::greater, {sum, tiny});
  const NodeId chosen = b.map(MapFn::where, {positive, sum, tiny});
  const NodeId total = b.reduce(ReduceFn::max, chosen, list({0, 2}));
  b.cumulate(ReduceFn::sum, chosen, 1, Direction::reverse);
  b.cumulate(ReduceFn::prod, chosen, 1, Direction::forward);
  b.cumulate(ReduceFn::logsumexp, chosen, 0, Direction::forward);
  b.arg_reduce(ReduceFn::min, chosen, 2);
  b.top_k_index(chosen, 2, Poly(2));
  b.top_k_index(chosen, 2, Poly(3), ReduceFn::min);
  b.map(MapFn::clamp, {chosen, tiny, scale});
  const NodeId whole = b.constant(Poly(7), DType::i32);
  b.map(MapFn::remainder, {ids, whole});
  const NodeId product = b.contract(chosen, w, list({0, 1, 3}), list({3, 2}), 3);
  const NodeId turned = b.permute(product, list({2, 0, 1}));
  b.broadcast(noise, list({1}), {{"k", Poly(3)}, axis("batch")});
  const NodeId split = b.split(turned, list({2, 1, 1}), {{"four", Poly(4)}, axis("width"), axis("batch"), axis("seq")});
  b.merge(split, list({2, 1, 1}), {{"(four width)", d("width") * Poly(4)}, axis("batch"), {"", d("seq")}});
  const NodeId unit = b.split(b.reduce(ReduceFn::sum, noise, list({0})), {}, {});
  b.merge(unit, list({0}), {{"", Poly(1)}});
  b.slice(product, 1, Poly(1), d("seq") - Poly(2), 1);
  b.slice(product, 0, d("batch") - Poly(1), d("batch"), -1);
  b.contract(chosen, chosen, list({0, 4, 1}), list({0, 4, 2}), 3);
  const NodeId gram = b.contract(w, w, list({0, 2}), list({1, 2}), 2);
  b.diagonal(gram, list({0, 0}));
  const NodeId window = b.window(chosen, 1, {Poly(1), Poly(2)}, {{"place", d("seq") - Poly(4)}, {"tap", Poly(3)}});
  b.fold(window, 1, {Poly(1), Poly(2)}, axis("seq"));
  b.pad(noise, {Poly(1)}, {d("seq")}, -std::numeric_limits<double>::infinity());
  b.pad(noise, {Poly(0)}, {Poly(2)}, Poly(0));
  const NodeId parts[] = {noise, noise, noise};
  b.concat(parts, 0);
  const GatherAttr gather{0, list({kNoAxis, 2}), list({0, 1})};
  const NodeId rows = b.gather(table, ids, gather, {axis("batch"), axis("seq"), axis("width")});
  b.scatter_add(rows, ids, gather, g.type(table).axes);
  b.scatter_extreme(Op::scatter_max, rows, ids, gather, g.type(table).axes);
  b.scatter_extreme(Op::scatter_min, rows, ids, gather, g.type(table).axes);
  const NodeId patched = b.scatter_set(table, rows, ids, gather);
  b.origin.phase = Phase::optimizer;
  b.cast(patched, DType::f8e4m3);
  g.nodes.back().reason = "weights of a contraction";
  b.stop_gradient(total);
  b.softmax(chosen, 2);
  b.logsumexp(chosen, list({1, 2}));
  b.dropout(chosen, 0.1, "h.0.drop");
  b.training();
  add_scan(b, chosen, table, noise);
  b.collective(Op::all_reduce, chosen, {0, ReduceFn::max, 0, 0});
  b.collective(Op::reduce_scatter, chosen, {0, ReduceFn::sum, 0, 2});
  b.collective(Op::all_gather, chosen, {0, ReduceFn::sum, 1, 0});
  b.collective(Op::all_to_all, chosen, {0, ReduceFn::sum, 2, 0});
  b.shift(chosen, 1, 2);
  b.append([&] {
    Node node = g[b.shift(chosen, 0, 1)];
    node.attr = ShiftAttr{0, 1, 0};
    return node;
  }());
  g.chosen_by = {"batch"};
  const NodeId loss = b.reduce(ReduceFn::sum, total, list({0}));
  const NodeId one = b.constant(Poly(1), DType::i64);
  const NodeId next = b.map(MapFn::add, {state, one});

  g.outputs = {{"y", product}, {"rows", rows}};
  g.updates = {{state, next}, {table, patched}};
  g.loss = loss;
  g.gradients = {{w, w}, {table, NodeId{}}};
  return g;
}

}  // namespace einc
