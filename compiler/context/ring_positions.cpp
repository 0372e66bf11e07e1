// SPDX-License-Identifier: Apache-2.0
#include "compiler/context/ring_positions.h"

#include <utility>

#include "compiler/partition/zigzag.h"

namespace einc {

NodeId RingPositions::owners(int c) {
  const NodeId own = build_.iota(devices_);
  if (c == 0) return own;
  const NodeId past = build_.map(MapFn::add, {own, build_.constant(Poly(c), DType::i32)});
  return build_.map(MapFn::remainder, {past, build_.constant(devices_.size, DType::i32)});
}

Placed RingPositions::rows(const Type& whole) {
  const DType dtype = whole.dtype;
  if (order_ == RingOrder::zigzag) return {in_zigzag(part(whole.axis(0), 2), dtype, 0), 0, true, true};
  const Axis own = part(whole.axis(0), 1);
  return {sum(first_of_block(own.size, dtype, 0), {0}, build_.iota(own, dtype), {1}, {devices_, own}), 0, true};
}

Placed RingPositions::keys(const Type& whole, int c) {
  const DType dtype = whole.dtype;
  const Axis own = part(whole.axis(0), 1);
  if (order_ == RingOrder::program)
    return {sum(first_of_block(own.size, dtype, c), {0}, build_.iota(own, dtype), {1}, {devices_, own}), 0, true};
  return {build_.merge(in_zigzag(part(whole.axis(0), 2), dtype, c), {1, 2}, {devices_, own}), 0, true};
}

Placed RingPositions::key_place(const Type& whole) { return {build_.iota(part(whole.axis(0), 1), whole.dtype)}; }

Placed RingPositions::row_place(const Type& whole, int c, bool last) {
  const DType dtype = whole.dtype;
  const Axis chunk = part(whole.axis(0), 2);
  const auto number = [&](const Poly& value) { return build_.constant(value, dtype); };
  const auto of_half = [&](const Poly& elements) { return build_.map(MapFn::mul, {build_.iota(ring_halves(), dtype), number(elements)}); };
  if (c == 0) return {sum(of_half(chunk.size), {0}, build_.iota(chunk, dtype), {1}, {ring_halves(), chunk}), 0, false, true};
  const NodeId is_earlier = build_.map(MapFn::greater_equal, {build_.iota(devices_, dtype), number(devices_.size - Poly(c))});
  const Poly less = Poly(last ? 1 : 0);
  const NodeId behind[] = {is_earlier, number(chunk.size - less), build_.map(MapFn::sub, {of_half(chunk.size * Poly(2)), number(less)})};
  const AxisList maps[] = {{0}, {}, {1}};
  return {build_.map(MapFn::where, behind, maps, {devices_, ring_halves()}, dtype), 0, true, true, false};
}

NodeId RingPositions::first_of_block(const Poly& size, DType dtype, int c) {
  for (const FirstOfBlock& made : firsts_)
    if (made.size == size && made.dtype == dtype && made.step == c) return made.node;
  NodeId first = build_.map(MapFn::mul, {owners(c), build_.constant(size, DType::i32)});
  if (dtype != DType::i32) first = build_.cast(first, dtype);
  return firsts_.emplace_back(FirstOfBlock{size, dtype, c, first}).node;
}

NodeId RingPositions::in_zigzag(const Axis& place, DType dtype, int c) {
  const NodeId device = owners(c);
  return zigzag_numbers(build_, dtype == DType::i32 ? device : build_.cast(device, dtype), place);
}

NodeId RingPositions::sum(NodeId first, AxisList first_axes, NodeId second, AxisList second_axes, std::vector<Axis> axes) {
  const NodeId operands[] = {first, second};
  const AxisList maps[] = {std::move(first_axes), std::move(second_axes)};
  return build_.map(MapFn::add, operands, maps, std::move(axes), build_.type(second).dtype);
}

}  // namespace einc
