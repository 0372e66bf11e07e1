// SPDX-License-Identifier: Apache-2.0
// Rules of ops that move elements: to other axes, into windows, by an index.
#include "compiler/ir/node_rules.h"

namespace einc {

void NodeRules::permute() {
  const auto* a = attr<PermuteAttr>();
  if (a == nullptr) return;
  if (a->order.size() != in(0).rank()) return fail("{} entries for rank {}", a->order.size(), in(0).rank());
  rank_is(in(0).rank());
  for (int i = 0; i < a->order.size(); ++i)
    if (!has_axis(in(0), a->order[i]) || a->order.find(a->order[i]) != i) return fail("not a permutation");
  for (int i = 0; i < a->order.size(); ++i) size_is(i, in(0).axis(a->order[i]).size);
  same_dtype();
}

void NodeRules::broadcast() {
  const auto* a = attr<BroadcastAttr>();
  if (a == nullptr) return;
  if (a->map.size() != in(0).rank()) return fail("{} entries for rank {}", a->map.size(), in(0).rank());
  for (int i = 0; i < a->map.size(); ++i) {
    if (i > 0 && a->map[i] <= a->map[i - 1]) fail("the map does not increase");
    size_is(a->map[i], in(0).axis(i).size);
  }
  same_dtype();
}

void NodeRules::groups(const AxisList& counts, const Type& coarse, const Type& fine) {
  if (counts.size() != coarse.rank()) return fail("{} counts for {} axes", counts.size(), coarse.rank());
  int next = 0;
  for (int i = 0; i < counts.size(); ++i) {
    Poly product(1);
    for (int k = 0; k < counts[i]; ++k, ++next) {
      if (!has_axis(fine, next)) return fail("more axes are counted than there are");
      product *= fine.axis(next).size;
    }
    if (!(product == coarse.axis(i).size)) fail("axes of product {} make one of {}", product.str(), coarse.axis(i).size.str());
  }
  if (next != fine.rank()) fail("{} of {} axes are used", next, fine.rank());
  same_dtype();
}
void NodeRules::split() {
  if (const auto* a = attr<SplitAttr>()) groups(a->counts, in(0), out_);
}
void NodeRules::merge() {
  if (const auto* a = attr<MergeAttr>()) groups(a->counts, out_, in(0));
}

void NodeRules::slice() {
  const auto* a = attr<SliceAttr>();
  if (a == nullptr) return;
  if (!has_axis(in(0), a->axis)) return fail("no axis {}", a->axis);
  if (a->step == 0) fail("step 0");
  others_kept(a->axis);
  same_dtype();
  if (out_.rank() != in(0).rank()) return;
  const Poly last = a->start + (out_.axis(a->axis).size - Poly(1)) * Poly(a->step);
  for (const Poly& place : {a->start, last}) {
    const auto from_begin = place.as_integer(), to_end = (in(0).axis(a->axis).size - place).as_integer();
    if ((from_begin && *from_begin < 0) || (to_end && *to_end < 1)) fail("element {} is outside the axis", place.str());
  }
}

void NodeRules::diagonal() {
  const auto* a = attr<DiagonalAttr>();
  if (a == nullptr) return;
  if (a->map.size() != in(0).rank()) return fail("{} entries for rank {}", a->map.size(), in(0).rank());
  for (int i = 0; i < a->map.size(); ++i) size_is(a->map[i], in(0).axis(i).size);
  for (int i = 0; i < out_.rank(); ++i)
    if (!a->map.contains(i)) fail("axis {} comes from nowhere", i);
  same_dtype();
}

void NodeRules::windows(const WindowAttr& a, const Type& flat, const Type& places) {
  const int count = static_cast<int>(a.strides.size());
  if (!has_axis(flat, a.axis)) return fail("no axis {}", a.axis);
  if (places.rank() != flat.rank() - 1 + count) return fail("{} strides between ranks {} and {}", count, flat.rank(), places.rank());
  Poly last(0);
  for (int k = 0; k < count; ++k) last += a.strides[static_cast<size_t>(k)] * (places.axis(a.axis + k).size - Poly(1));
  if (const auto room = (flat.axis(a.axis).size - last).as_integer(); room && *room < 1) fail("the window reaches beyond its axis");
  for (int i = 0; i < flat.rank(); ++i) {
    if (i == a.axis) continue;
    const int j = i < a.axis ? i : i - 1 + count;
    if (!(flat.axis(i).size == places.axis(j).size)) fail("axis {} changes its size", i);
  }
}

void NodeRules::pad() {
  const auto* a = attr<PadAttr>();
  if (a == nullptr) return;
  const size_t rank = in(0).axes.size();
  if (a->before.size() != rank || a->after.size() != rank) return fail("amounts for another rank");
  rank_is(in(0).rank());
  for (size_t i = 0; i < rank; ++i) {
    size_is(static_cast<int>(i), in(0).axes[i].size + a->before[i] + a->after[i]);
    for (const Poly& amount : {a->before[i], a->after[i]})
      if (const auto n = amount.as_integer(); n && *n < 0) fail("negative amount");
  }
  same_dtype();
}

void NodeRules::concat() {
  const auto* a = attr<ConcatAttr>();
  if (a == nullptr) return;
  if (!has_axis(out_, a->axis)) return fail("no axis {}", a->axis);
  Poly total(0);
  for (size_t k = 0; k < node_.operands.size(); ++k) {
    if (in(k).rank() != out_.rank()) return fail("operand {} has another rank", k);
    for (int i = 0; i < out_.rank(); ++i)
      if (i != a->axis) size_is(i, in(k).axis(i).size);
    total += in(k).axis(a->axis).size;
  }
  size_is(a->axis, total);
}

void NodeRules::indexed(const GatherAttr& a, const Type& table, const Type& ids, const Type& values) {
  if (!has_axis(table, a.axis)) return fail("no axis {}", a.axis);
  if (a.table_map.size() != table.rank() || a.ids_map.size() != ids.rank()) return fail("maps for other ranks");
  if (!is_integer(ids.dtype)) fail("positions of dtype {}", to_string(ids.dtype));
  if (a.table_map[a.axis] != kNoAxis) fail("the indexed axis has a place in the result");
  const auto fits = [&](const AxisList& map, const Type& t, int i) {
    if (!has_axis(values, map[i]) || !(values.axis(map[i]).size == t.axis(i).size)) fail("axis {} of an operand has no place", i);
    if (map.find(map[i]) != i) fail("two axes of an operand meet");
  };
  for (int i = 0; i < table.rank(); ++i)
    if (i != a.axis) fits(a.table_map, table, i);
  for (int i = 0; i < ids.rank(); ++i) fits(a.ids_map, ids, i);
  for (int i = 0; i < values.rank(); ++i)
    if (!a.table_map.contains(i) && !a.ids_map.contains(i)) fail("axis {} comes from nowhere", i);
}

}  // namespace einc
