// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/loss_scale.h"

#include <limits>

#include "runtime/base/training_names.h"

namespace einc {
namespace {

Init constant_init(double value) {
  Init init;
  init.kind = InitKind::constant;
  init.args = {value};
  return init;
}

}  // namespace

LossScale::LossScale(Builder& build)
    : build_(build),
      scale_(build.state(StateAttr{Name(kLossScale), constant_init(kInitial), StateRole::scalar}, Type{DType::f32, {}})),
      good_steps_(build.state(StateAttr{Name("optimizer.good_steps"), constant_init(0), StateRole::scalar}, Type{DType::f32, {}})) {}

NodeId LossScale::number(double value) { return build_.constant(value, DType::f32); }

NodeId LossScale::scaled(NodeId loss) { return build_.map(MapFn::mul, {loss, scale_}); }

NodeId LossScale::unscaled(NodeId gradient) {
  const NodeId infinity = build_.constant(std::numeric_limits<double>::infinity(), build_.type(gradient).dtype);
  NodeId finite = build_.map(MapFn::less, {build_.map(MapFn::abs, {gradient}), infinity});
  if (const int rank = build_.type(finite).rank(); rank > 0) finite = build_.reduce(ReduceFn::all, finite, AxisList::range(rank));
  finite_ = finite_.valid() ? build_.map(MapFn::logical_and, {finite_, finite}) : finite;
  return build_.map(MapFn::div, {gradient, scale_});
}

void LossScale::guard(size_t first) {
  Graph& graph = build_.graph();
  for (size_t i = first; i < graph.updates.size(); ++i) {
    const NodeId target = graph.updates[i].target, value = graph.updates[i].value;
    build_.origin.module = graph[value].origin.module;
    build_.origin.loop_context = graph[value].origin.loop_context;
    const NodeId kept = build_.map(MapFn::where, {finite_, value, target});
    graph.updates[i].value = kept;
  }
  build_.origin.module = Name();
  build_.origin.loop_context = 0;
  const NodeId count = build_.map(MapFn::add, {good_steps_, number(1)});
  const NodeId grows = build_.map(MapFn::greater_equal, {count, number(kGrowthInterval)});
  const NodeId larger = build_.map(MapFn::where, {grows, build_.map(MapFn::mul, {scale_, number(2)}), scale_});
  const NodeId smaller = build_.map(MapFn::mul, {scale_, number(0.5)});
  graph.updates.push_back({scale_, build_.map(MapFn::where, {finite_, larger, smaller})});
  const NodeId next = build_.map(MapFn::where, {grows, number(0), count});
  graph.updates.push_back({good_steps_, build_.map(MapFn::where, {finite_, next, number(0)})});
}

}  // namespace einc
