// SPDX-License-Identifier: Apache-2.0
#include "compiler/autodiff/backward.h"

#include <algorithm>

namespace einc {

Partial apply_elementwise(Builder& build, MapFn fn, std::span<const Partial> operands, const std::vector<Axis>& frame) {
  std::vector<bool> present(frame.size(), false);
  for (const Partial& p : operands)
    for (int axis : p.axes) present[static_cast<size_t>(axis)] = true;
  AxisList kept;
  std::vector<Axis> out_axes;
  for (size_t i = 0; i < frame.size(); ++i)
    if (present[i]) {
      kept.push_back(static_cast<int>(i));
      out_axes.push_back(frame[i]);
    }
  std::vector<NodeId> values;
  std::vector<AxisList> maps;
  std::vector<DType> dtypes;
  for (const Partial& p : operands) {
    AxisList map;
    for (int axis : p.axes) map.push_back(kept.find(axis));
    values.push_back(p.value);
    maps.push_back(map);
    dtypes.push_back(build.type(p.value).dtype);
  }
  const DType dtype = Builder::map_dtype(fn, dtypes);
  return {build.map(fn, values, maps, std::move(out_axes), dtype), kept};
}

Backward::Backward(Builder& builder, NodeId forward, Partial g)
    : build(builder), id(forward), node(builder.graph()[forward]), gradient(g) {}

NodeId Backward::constant(ScalarValue value, NodeId beside) const { return build.constant(std::move(value), build.type(beside).dtype); }

Partial Backward::apply(MapFn fn, std::initializer_list<Partial> operands, const std::vector<Axis>& frame) const {
  return apply_elementwise(build, fn, {operands.begin(), operands.size()}, frame);
}

NodeId Backward::full(const Partial& partial, const std::vector<Axis>& frame) const {
  if (partial.axes.size() == static_cast<int>(frame.size())) return partial.value;
  return build.broadcast(partial.value, partial.axes, frame);
}

Partial Backward::with_axes(std::span<const int> wanted) const {
  AxisList kept;
  std::vector<Axis> out_axes;
  for (int i = 0; i < node.type.rank(); ++i)
    if (gradient.axes.contains(i) || std::find(wanted.begin(), wanted.end(), i) != wanted.end()) {
      kept.push_back(i);
      out_axes.push_back(node.type.axis(i));
    }
  if (kept == gradient.axes) return gradient;
  AxisList map;
  for (int axis : gradient.axes) map.push_back(kept.find(axis));
  return {build.broadcast(gradient.value, map, std::move(out_axes)), kept};
}

Partial Backward::sum_to(const Partial& partial, const AxisList& map, const std::vector<Axis>& frame) const {
  AxisList summed, positions;
  for (int i = 0; i < partial.axes.size(); ++i) {
    const int k = map.find(partial.axes[i]);
    if (k < 0)
      summed.push_back(i);
    else
      positions.push_back(k);
  }
  Poly copies(1);
  for (size_t i = 0; i < frame.size(); ++i) {
    const int axis = static_cast<int>(i);
    if (!map.contains(axis) && !partial.axes.contains(axis)) copies *= frame[i].size;
  }
  NodeId value = partial.value;
  if (!summed.empty()) value = build.reduce(ReduceFn::sum, value, summed);
  if (!copies.is_one()) value = build.map(MapFn::mul, {value, constant(copies, value)});
  return sorted(value, positions);
}

Partial Backward::sorted(NodeId value, const AxisList& positions) const {
  std::vector<int> order;
  for (int i = 0; i < positions.size(); ++i) order.push_back(i);
  std::sort(order.begin(), order.end(), [&](int a, int b) { return positions[a] < positions[b]; });
  AxisList permutation, increasing;
  for (int i : order) {
    permutation.push_back(i);
    increasing.push_back(positions[i]);
  }
  return {permutation.is_identity() ? value : build.permute(value, permutation), increasing};
}

}  // namespace einc
