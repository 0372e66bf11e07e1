// SPDX-License-Identifier: Apache-2.0
// Gradients of what moves elements: the adjoint of each movement. x is the operand, g the gradient of the result.
#include "compiler/autodiff/rules.h"

namespace einc {
namespace {

// Pads one axis of `g` (a position in g's value) with zeros.
NodeId pad_axis(const Backward& b, NodeId g, int axis, Poly before, Poly after) {
  const size_t rank = b.build.type(g).axes.size();
  std::vector<Poly> lo(rank), hi(rank);
  lo[static_cast<size_t>(axis)] = std::move(before);
  hi[static_cast<size_t>(axis)] = std::move(after);
  return b.build.pad(g, std::move(lo), std::move(hi), Poly(0));
}

}  // namespace

// out axis i is in axis order[i]: axes go back to where they came from.
std::optional<Partial> gradient_of_permute(const Backward& b, int) {
  const AxisList& order = b.attr<PermuteAttr>().order;
  AxisList positions;
  for (int axis : b.gradient.axes) positions.push_back(order[axis]);
  return b.sorted(b.gradient.value, positions);
}

// dx = g summed over the new axes.
std::optional<Partial> gradient_of_broadcast(const Backward& b, int) { return b.sum_to(b.gradient, b.attr<BroadcastAttr>().map, b.axes()); }

// split and merge are each other's adjoint. A number everywhere stays one.
std::optional<Partial> gradient_of_split(const Backward& b, int) {
  if (b.gradient.axes.empty()) return b.gradient;
  return b.whole(b.build.merge(b.full_gradient(), b.attr<SplitAttr>().counts, b.operand_type(0).axes));
}
std::optional<Partial> gradient_of_merge(const Backward& b, int) {
  if (b.gradient.axes.empty()) return b.gradient;
  return b.whole(b.build.split(b.full_gradient(), b.attr<MergeAttr>().counts, b.operand_type(0).axes));
}

// y_i = x_(start + step i): g at those places, zeros elsewhere. Steps spread g out with a fold, backward ones turn it first.
std::optional<Partial> gradient_of_slice(const Backward& b, int) {
  const SliceAttr& attr = b.attr<SliceAttr>();
  const int wanted[] = {attr.axis};
  const Partial g = b.with_axes(wanted);
  const int axis = g.axes.find(attr.axis);
  const Poly count = b.node.type.axis(attr.axis).size;
  const Axis whole = b.operand_type(0).axis(attr.axis);
  NodeId value = g.value;
  Poly first = attr.start, covered = count;
  if (attr.step < 0) {
    value = b.build.slice(value, axis, count - Poly(1), count, -1);
    first = attr.start + Poly(attr.step) * (count - Poly(1));
  }
  if (attr.step != 1 && attr.step != -1) {
    covered = whole.size - first;
    value = b.build.fold(value, axis, {Poly(attr.step < 0 ? -attr.step : attr.step)}, Axis{whole.name, covered});
  }
  const Poly after = whole.size - first - covered;
  if (!first.is_zero() || !after.is_zero()) value = pad_axis(b, value, axis, first, after);
  return Partial{value, g.axes};
}

// y takes the elements of x whose repeated axes have one index: dx = g there, 0 elsewhere.
std::optional<Partial> gradient_of_diagonal(const Backward& b, int) {
  const AxisList& map = b.attr<DiagonalAttr>().map;
  const std::vector<Axis> frame = b.operand_type(0).axes;
  AxisList places;
  for (int axis : b.gradient.axes) places.push_back(map.find(axis));
  Partial result = b.sorted(b.gradient.value, places);
  for (int i = 0; i < map.size(); ++i) {
    const int first = map.find(map[i]);
    if (first == i) continue;
    const Partial rows{b.build.iota(frame[static_cast<size_t>(first)]), {first}};
    const Partial columns{b.build.iota(frame[static_cast<size_t>(i)]), {i}};
    const Partial on_diagonal = b.apply(MapFn::equal, {rows, columns}, frame);
    const Partial zero{b.constant(Poly(0), result.value), {}};
    result = b.apply(MapFn::where, {on_diagonal, result, zero}, frame);
  }
  return result;
}

// window reads element sum strides[k] i_k; fold adds there: each is the other's adjoint.
std::optional<Partial> gradient_of_window(const Backward& b, int) {
  const WindowAttr& attr = b.attr<WindowAttr>();
  return b.whole(b.build.fold(b.full_gradient(), attr.axis, attr.strides, b.operand_type(0).axis(attr.axis)));
}
std::optional<Partial> gradient_of_fold(const Backward& b, int) {
  const WindowAttr& attr = b.attr<WindowAttr>();
  const std::vector<Axis> axes = b.operand_type(0).axes;
  std::vector<Axis> places(axes.begin() + attr.axis, axes.begin() + attr.axis + static_cast<int>(attr.strides.size()));
  return b.whole(b.build.window(b.full_gradient(), attr.axis, attr.strides, std::move(places)));
}

// dx = the part of g that x fills.
std::optional<Partial> gradient_of_pad(const Backward& b, int) {
  const PadAttr& attr = b.attr<PadAttr>();
  NodeId value = b.gradient.value;
  for (int i = 0; i < b.gradient.axes.size(); ++i) {
    const int axis = b.gradient.axes[i];
    const Poly size = b.operand_type(0).axis(axis).size;
    if (size != b.node.type.axis(axis).size) value = b.build.slice(value, i, attr.before[static_cast<size_t>(axis)], size);
  }
  return Partial{value, b.gradient.axes};
}

// Each part takes its slice of g.
std::optional<Partial> gradient_of_concat(const Backward& b, int k) {
  const int axis = b.attr<ConcatAttr>().axis;
  const int place = b.gradient.axes.find(axis);
  if (place < 0) return b.gradient;
  Poly start;
  for (int i = 0; i < k; ++i) start += b.operand_type(i).axis(axis).size;
  return Partial{b.build.slice(b.gradient.value, place, start, b.operand_type(k).axis(axis).size), b.gradient.axes};
}

}  // namespace einc
