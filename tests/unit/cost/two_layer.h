// SPDX-License-Identifier: Apache-2.0
// Two linear layers and the mean of squares (cases C03 to C09 of the accounting facts), forward and backward built by hand.
#pragma once
#include "compiler/ir/build.h"

namespace einc::test {

struct TwoLayer {
  Graph graph;
  NodeId x, w1, w2, h1, h2, loss, dw1, dw2, dx;
};

struct TwoLayerOptions {
  bool train_w1 = true;
  bool want_dx = false;
};

// d mean(h2^2) / d h2 = h2 * (2 / (B K)).
inline TwoLayer two_layer(TwoLayerOptions options = {}) {
  TwoLayer t;
  t.graph.name = "two_layer.ein";
  const Poly B = Poly::dim("B"), D = Poly::dim("D"), K = Poly::dim("K");
  t.graph.dims.declare_default("B", 1024);
  t.graph.dims.declare_default("D", 256);
  t.graph.dims.declare_default("K", 64);
  Builder b(t.graph);
  t.x = b.input("x", Type{DType::f32, {{"B", B}, {"D", D}}});
  t.w1 = b.param({"w1", {}, !options.train_w1}, Type{DType::real, {{"D", D}, {"D", D}}});
  t.w2 = b.param({"w2", {}, false}, Type{DType::real, {{"D", D}, {"K", K}}});
  t.h1 = b.contract(t.x, t.w1, {0, 2}, {2, 1}, 2);
  t.h2 = b.contract(t.h1, t.w2, {0, 2}, {2, 1}, 2);
  const NodeId sum = b.reduce(ReduceFn::sum, b.map(MapFn::mul, {t.h2, t.h2}), {0, 1});
  t.loss = b.map(MapFn::mul, {sum, b.constant(divide(Poly(1), B * K))});
  t.graph.loss = t.loss;
  b.origin.phase = Phase::backward;
  const NodeId dh2 = b.map(MapFn::mul, {t.h2, b.constant(divide(Poly(2), B * K))});
  t.dw2 = b.contract(t.h1, dh2, {2, 0}, {2, 1}, 2);
  t.graph.gradients.push_back({t.w2, t.dw2});
  if (options.train_w1 || options.want_dx) {
    const NodeId dh1 = b.contract(dh2, t.w2, {0, 2}, {1, 2}, 2);
    if (options.train_w1) {
      t.dw1 = b.contract(t.x, dh1, {2, 0}, {2, 1}, 2);
      t.graph.gradients.push_back({t.w1, t.dw1});
    }
    if (options.want_dx) {
      t.dx = b.contract(dh1, t.w1, {0, 2}, {1, 2}, 2);
      t.graph.outputs.push_back({"dx", t.dx});
    }
  }
  b.origin.phase = Phase::optimizer;
  for (const Update& gradient : t.graph.gradients) {
    const NodeId step = b.map(MapFn::mul, {gradient.value, b.constant(0.01)});
    t.graph.updates.push_back({gradient.target, b.map(MapFn::sub, {gradient.target, step})});
  }
  return t;
}

}  // namespace einc::test
