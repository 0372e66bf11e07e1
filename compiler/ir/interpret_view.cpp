// SPDX-License-Identifier: Apache-2.0
// Views, folds, padding and joining in the interpreter. A view is the operand's elements at other strides; here it is a copy.
#include <algorithm>

#include "compiler/ir/interpret_ops.h"

namespace einc {
namespace {

// Where a view's element lies in the operand: start + sum of index * stride.
struct Placement {
  int64_t start = 0;
  std::vector<int64_t> strides;
};

// Every element of a view lies within the operand, whatever the dims turned out to be.
void check_within(const Evaluation& e, const Placement& place, const std::vector<int64_t>& sizes, int64_t count) {
  int64_t low = place.start, high = place.start;
  for (size_t i = 0; i < sizes.size(); ++i) (place.strides[i] < 0 ? low : high) += place.strides[i] * (sizes[i] - 1);
  EINC_CHECK(low >= 0 && high < count, "{} reaches from {} to {} in {} elements", to_string(e.node.op), low, high, count);
}

// Strides of a window's axes over the operand with the one axis.
std::vector<int64_t> window_strides(const Evaluation& e, const std::vector<int64_t>& flat_shape) {
  const WindowAttr& attr = e.node.as<WindowAttr>();
  std::vector<int64_t> strides = row_major_strides(flat_shape);
  const auto axis = static_cast<size_t>(attr.axis);
  const int64_t unit = strides[axis];
  strides.erase(strides.begin() + attr.axis);
  for (size_t k = 0; k < attr.strides.size(); ++k)
    strides.insert(strides.begin() + static_cast<int64_t>(axis + k), unit * e.value_of(attr.strides[k]));
  return strides;
}

void check_window(const Evaluation& e, const std::vector<int64_t>& flat_shape, const std::vector<int64_t>& places) {
  const WindowAttr& attr = e.node.as<WindowAttr>();
  const auto axis = static_cast<size_t>(attr.axis);
  int64_t low = 0, high = 0;
  for (size_t k = 0; k < attr.strides.size(); ++k) {
    const int64_t stride = e.value_of(attr.strides[k]);
    (stride < 0 ? low : high) += stride * (places[axis + k] - 1);
  }
  EINC_CHECK(low >= 0 && high < flat_shape[axis], "{} reaches {} on an axis of {}", to_string(e.node.op), high, flat_shape[axis]);
}

Placement slice_placement(const Evaluation& e) {
  const SliceAttr& attr = e.node.as<SliceAttr>();
  const auto axis = static_cast<size_t>(attr.axis);
  Placement place{0, row_major_strides(e.in[0]->shape)};
  const int64_t start = e.value_of(attr.start), last = start + attr.step * (e.out.shape[axis] - 1), size = e.in[0]->shape[axis];
  EINC_CHECK(start >= 0 && start < size && last >= 0 && last < size, "slice from {} to {} of an axis of {}", start, last, size);
  place.start = start * place.strides[axis];
  place.strides[axis] *= attr.step;
  return place;
}

Placement placement(const Evaluation& e) {
  const std::vector<int64_t> own = row_major_strides(e.in[0]->shape);
  Placement place{0, std::vector<int64_t>(e.out.shape.size(), 0)};
  const auto stride = [&](int i) -> int64_t& { return place.strides[static_cast<size_t>(i)]; };
  if (e.node.op == Op::permute) {
    const AxisList& order = e.node.as<PermuteAttr>().order;
    for (int i = 0; i < order.size(); ++i) stride(i) = own[static_cast<size_t>(order[i])];
  } else if (e.node.op == Op::broadcast || e.node.op == Op::diagonal) {
    const AxisList& map = e.node.op == Op::broadcast ? e.node.as<BroadcastAttr>().map : e.node.as<DiagonalAttr>().map;
    for (int i = 0; i < map.size(); ++i) stride(map[i]) += own[static_cast<size_t>(i)];
  } else if (e.node.op == Op::slice) {
    place = slice_placement(e);
  } else if (e.node.op == Op::window) {
    check_window(e, e.in[0]->shape, e.out.shape);
    place.strides = window_strides(e, e.in[0]->shape);
  } else {  // split, merge, stop_gradient: the same elements in the same order
    place.strides = row_major_strides(e.out.shape);
  }
  check_within(e, place, e.out.shape, e.in[0]->count());
  return place;
}

// out[out_place] = in[in_place] over `shape`.
void copy(const Tensor& in, const Placement& from, Tensor& out, const Placement& to, const std::vector<int64_t>& shape) {
  const auto move = [&](const auto& source, auto& target) {
    walk<2>(shape, {to.strides, from.strides}, {to.start, from.start},
            [&](const std::array<int64_t, 2>& at) { target[static_cast<size_t>(at[0])] = source[static_cast<size_t>(at[1])]; });
  };
  if (out.is_real())
    move(in.reals, out.reals);
  else
    move(in.ints, out.ints);
}

// The additions of an einsum whose product has a window on its right are counted with the product's; one axis alone is spread out.
bool is_counted_elsewhere(const Evaluation& e) {
  if (e.node.origin.phase != Phase::forward) return false;
  if (e.node.as<WindowAttr>().strides.size() == 1) return true;
  const Node* at = &e.node;
  while (at->op == Op::fold || at->op == Op::permute || at->op == Op::cast) at = &e.graph[at->operands[0]];
  return at->op == Op::contract;
}

}  // namespace

void evaluate_view(Evaluation& e) { copy(*e.in[0], placement(e), e.out, {0, row_major_strides(e.out.shape)}, e.out.shape); }

void evaluate_fold(Evaluation& e) {
  const std::vector<int64_t>& shape = e.in[0]->shape;
  check_window(e, e.out.shape, shape);
  const std::array<std::vector<int64_t>, 2> strides{row_major_strides(shape), window_strides(e, e.out.shape)};
  const uint64_t counted = is_counted_elsewhere(e) ? 0 : 1;
  const auto add = [&](const auto& in, auto& out) {
    walk<2>(shape, strides, {}, [&](const std::array<int64_t, 2>& at) {
      out[static_cast<size_t>(at[1])] += in[static_cast<size_t>(at[0])];
      e.counts.other += counted;
    });
  };
  if (e.out.is_real()) return add(e.in[0]->reals, e.out.reals);
  add(e.in[0]->ints, e.out.ints);
  for (int64_t& x : e.out.ints) x = wrap_integer(e.out.dtype, x);
}

void evaluate_pad(Evaluation& e) {
  const PadAttr& attr = e.node.as<PadAttr>();
  if (e.out.is_real())
    std::fill(e.out.reals.begin(), e.out.reals.end(), e.value_of(attr.value));
  else
    std::fill(e.out.ints.begin(), e.out.ints.end(), e.integer_of(attr.value));
  Placement to{0, row_major_strides(e.out.shape)};
  for (size_t i = 0; i < attr.before.size(); ++i) to.start += e.value_of(attr.before[i]) * to.strides[i];
  check_within(e, to, e.in[0]->shape, e.out.count());
  copy(*e.in[0], {0, row_major_strides(e.in[0]->shape)}, e.out, to, e.in[0]->shape);
}

void evaluate_concat(Evaluation& e) {
  const auto axis = static_cast<size_t>(e.node.as<ConcatAttr>().axis);
  Placement to{0, row_major_strides(e.out.shape)};
  for (const Tensor* part : e.in) {
    check_within(e, to, part->shape, e.out.count());
    const Placement from{0, row_major_strides(part->shape)};
    if (part->is_real() == e.out.is_real())
      copy(*part, from, e.out, to, part->shape);
    else
      copy(convert(*part, e.out.dtype), from, e.out, to, part->shape);
    to.start += part->shape[axis] * to.strides[axis];
  }
}

}  // namespace einc
