// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/zigzag.h"

namespace einc {
namespace {

// Views of one value, and its axis in pieces.
class ZigzagBuilder {
 public:
  ZigzagBuilder(Builder& build, NodeId x, int axis, const Poly& devices)
      : build_(build),
        axes_(build.type(x).axes),
        axis_(axis),
        n_(devices),
        all_{axes_[static_cast<size_t>(axis)].name, devices * Poly(2)},
        chunk_{Name(), divide(axes_[static_cast<size_t>(axis)].size, all_.size)},
        chunks_(split(x, {all_, chunk_})) {}

  // Low and high chunks, each [n c], stand beside each other: [n 2 c].
  NodeId into() {
    const NodeId low = build_.slice(chunks_, axis_, Poly(0), n_), high = build_.slice(chunks_, axis_, n_ * Poly(2) - Poly(1), n_, -1);
    const Axis one{Name(), Poly(1)}, devices{all_.name, n_};
    const NodeId sides[] = {split(low, {devices, one}), split(high, {devices, one})};
    return merged(build_.concat(sides, axis_ + 1), 3, axes_[static_cast<size_t>(axis_)]);
  }

  // The axis itself is what is put together, so that whoever loops along it meets it whole.
  NodeId out_of() {
    const Axis half{axes_[static_cast<size_t>(axis_)].name, n_ * chunk_.size};
    const NodeId low = build_.slice(chunks_, axis_, Poly(0), n_, 2), high = build_.slice(chunks_, axis_, n_ * Poly(2) - Poly(1), n_, -2);
    const NodeId halves[] = {merged(low, 2, half), merged(high, 2, half)};
    return build_.concat(halves, axis_);
  }

 private:
  // `into` stands for the axis at axis_.
  NodeId split(NodeId x, std::initializer_list<Axis> into) {
    std::vector<Axis> axes = build_.type(x).axes;
    axes.erase(axes.begin() + axis_);
    axes.insert(axes.begin() + axis_, into);
    return build_.split(x, counts(static_cast<int>(into.size()), build_.type(x).rank()), std::move(axes));
  }

  NodeId merged(NodeId x, int count, const Axis& into) {
    std::vector<Axis> axes = build_.type(x).axes;
    axes.erase(axes.begin() + axis_, axes.begin() + axis_ + count);
    axes.insert(axes.begin() + axis_, into);
    const int rank = static_cast<int>(axes.size());
    return build_.merge(x, counts(count, rank), std::move(axes));
  }

  AxisList counts(int own, int rank) const {
    AxisList list;
    for (int i = 0; i < rank; ++i) list.push_back(i == axis_ ? own : 1);
    return list;
  }

  Builder& build_;
  const std::vector<Axis> axes_;
  const int axis_;
  const Poly n_;
  const Axis all_, chunk_;
  const NodeId chunks_;  // [.. 2n c ..]
};

}  // namespace

NodeId zigzag(Builder& build, NodeId x, int axis, const Poly& devices, ZigzagMove move) {
  ZigzagBuilder builder(build, x, axis, devices);
  return move == ZigzagMove::into ? builder.into() : builder.out_of();
}

// Place i of side b of device r: (b = 0 ? r : 2n-1-r) * m + i.
NodeId zigzag_numbers(Builder& build, NodeId device, const Axis& place) {
  const Axis devices = build.type(device).axis(0), side{Name(), Poly(2)};
  const DType dtype = build.type(device).dtype;
  const NodeId mirrored = build.map(MapFn::sub, {build.constant(devices.size * Poly(2) - Poly(1), dtype), device});
  const NodeId is_low = build.map(MapFn::equal, {build.iota(side, dtype), build.constant(Poly(0), dtype)});
  const NodeId choice[] = {is_low, device, mirrored};
  const AxisList of_choice[] = {{1}, {0}, {0}};
  const NodeId chunk = build.map(MapFn::where, choice, of_choice, {devices, side}, dtype);
  const NodeId sum[] = {build.map(MapFn::mul, {chunk, build.constant(place.size, dtype)}), build.iota(place, dtype)};
  const AxisList of_sum[] = {{0, 1}, {2}};
  return build.map(MapFn::add, sum, of_sum, {devices, side, place}, dtype);
}

NodeId zigzag_positions(Builder& build, const Axis& axis, DType dtype, const MeshAxis& devices) {
  const Axis place{axis.name, divide(axis.size, devices.size * Poly(2))};
  return build.merge(zigzag_numbers(build, build.iota({devices.name, devices.size}, dtype), place), {3}, {axis});
}

}  // namespace einc
