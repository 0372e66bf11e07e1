// SPDX-License-Identifier: Apache-2.0
#include "compiler/autodiff/masked.h"

#include <algorithm>

namespace einc {
namespace {

bool is_zero(const Graph& graph, NodeId id) {
  const Node& node = graph[id];
  return node.op == Op::constant && node.as<ConstantAttr>().value == ScalarValue(Poly(0));
}

AxisList placed(const AxisList& positions, const AxisList& axes) {
  AxisList result;
  for (int position : positions) result.push_back(axes[position]);
  return result;
}

}  // namespace

Masked take_off_masks(const Graph& graph, const Partial& gradient) {
  Masked result{gradient, {}};
  Partial at = gradient;
  for (;;) {
    const Node& node = graph[at.value];
    if (node.op == Op::permute) {  // out axis i is in axis order[i]
      const AxisList& order = node.as<PermuteAttr>().order;
      AxisList axes;
      for (int in = 0; in < order.size(); ++in) axes.push_back(at.axes[order.find(in)]);
      at = {node.operands[0], axes};
      continue;
    }
    if (node.op != Op::map || node.as<MapAttr>().fn != MapFn::where) return result;
    const int side = is_zero(graph, node.operands[2]) ? 1 : is_zero(graph, node.operands[1]) ? 2 : 0;
    if (side == 0) return result;
    const MapAttr& attr = node.as<MapAttr>();
    const size_t passed = static_cast<size_t>(side);
    result.masks.push_back({{node.operands[0], placed(attr.maps[0], at.axes)}, side});
    at = result.value = {node.operands[passed], placed(attr.maps[passed], at.axes)};
  }
}

Partial put_on_masks(Builder& build, Partial value, const std::vector<GradientMask>& masks, const std::vector<Axis>& frame) {
  for (size_t i = masks.size(); i-- > 0;) {
    const Partial zero{build.constant(Poly(0), build.type(value.value).dtype), {}};
    const Partial operands[] = {masks[i].condition, masks[i].side == 1 ? value : zero, masks[i].side == 1 ? zero : value};
    value = apply_elementwise(build, MapFn::where, operands, frame);
  }
  return value;
}

bool same_masks(const std::vector<GradientMask>& a, const std::vector<GradientMask>& b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(), [](const GradientMask& x, const GradientMask& y) {
    return x.side == y.side && x.condition.value == y.condition.value && x.condition.axes == y.condition.axes;
  });
}

}  // namespace einc
