// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/kernel.h"

#include <algorithm>
#include <iterator>

namespace einc {

Affine Affine::of_axis(AxisId axis, int64_t coefficient) {
  Affine a;
  if (coefficient != 0) a.terms.push_back({axis, coefficient});
  return a;
}

int64_t Affine::coefficient(AxisId axis) const {
  for (const Term& t : terms)
    if (t.axis == axis) return t.coefficient;
  return 0;
}

Affine operator+(const Affine& a, const Affine& b) {
  Affine sum;
  sum.constant = a.constant + b.constant;
  auto i = a.terms.begin(), j = b.terms.begin();
  while (i != a.terms.end() || j != b.terms.end()) {
    if (j == b.terms.end() || (i != a.terms.end() && i->axis < j->axis))
      sum.terms.push_back(*i++);
    else if (i == a.terms.end() || j->axis < i->axis)
      sum.terms.push_back(*j++);
    else {
      const int64_t c = i->coefficient + j->coefficient;
      if (c != 0) sum.terms.push_back({i->axis, c});
      ++i, ++j;
    }
  }
  return sum;
}

Affine operator*(const Affine& a, int64_t factor) {
  if (factor == 0) return {};
  Affine product = a;
  product.constant *= factor;
  for (Affine::Term& t : product.terms) t.coefficient *= factor;
  return product;
}

Subscript operator+(const Subscript& a, const Subscript& b) {
  Subscript sum = a;
  sum.affine = a.affine + b.affine;
  sum.dynamic.insert(sum.dynamic.end(), b.dynamic.begin(), b.dynamic.end());
  return sum;
}

Subscript operator*(const Subscript& a, int64_t factor) {
  if (factor == 0) return {};
  Subscript product = a;
  product.affine = a.affine * factor;
  for (Subscript::Dynamic& d : product.dynamic) d.coefficient *= factor;
  return product;
}

uint64_t bits(const std::vector<AxisId>& axes) {
  uint64_t set = 0;
  for (AxisId a : axes) set |= bit(a);
  return set;
}

int64_t trips(const Kernel& kernel, uint64_t axes) {
  int64_t n = 1;
  for (AxisId a = 0; a < kernel.axes.size(); ++a)
    if (axes >> a & 1) n *= kernel.extent(a);
  return n;
}

bool chooses_wider(const Kernel& kernel, const Scalar& v) {
  return v.kind == ScalarKind::map && v.fn == MapFn::where && is_floating(v.dtype) &&
         (kernel.values[v.operands[1]].dtype != v.dtype || kernel.values[v.operands[2]].dtype != v.dtype);
}

void insert_first(Kernel& kernel, std::vector<Scalar> values) {
  const auto by = static_cast<ValueId>(values.size());
  const auto shift = [&](ValueId& id) {
    if (id != kNoValue) id += by;
  };
  const auto shift_index = [&](Subscript& index) {
    for (Subscript::Dynamic& d : index.dynamic) shift(d.value);
  };
  const auto shift_store = [&](Store& store) { shift(store.value), shift_index(store.index); };
  for (Scalar& v : kernel.values) {
    for (ValueId& x : v.operands) shift(x);
    shift_index(v.index);
    for (Range& g : v.guards) shift_index(g.index);
  }
  for (Accumulation& r : kernel.reductions) shift(r.value), shift(r.position);
  for (Stage& stage : kernel.stages)
    for (Store& store : stage.stores) shift_store(store);
  if (kernel.contraction) shift(kernel.contraction->left), shift(kernel.contraction->right);
  if (kernel.attention)
    for (AttentionStep& step : kernel.attention->steps) {
      shift(step.left), shift(step.right);
      for (Store& store : step.stores) shift_store(store);
    }
  kernel.values.insert(kernel.values.begin(), std::make_move_iterator(values.begin()), std::make_move_iterator(values.end()));
}

namespace {

uint64_t axes_of(const Subscript& index, const std::vector<uint64_t>& known) {
  uint64_t set = 0;
  for (const Affine::Term& t : index.affine.terms) set |= bit(t.axis);
  for (const Subscript::Dynamic& d : index.dynamic) set |= known[d.value];
  return set;
}

// The axes of the stage that computes each reduction.
std::vector<uint64_t> stage_axes(const Kernel& kernel) {
  std::vector<uint64_t> axes(kernel.reductions.size(), 0);
  for (const Stage& stage : kernel.stages)
    for (uint16_t r : stage.reductions) axes[r] = bits(stage.axes);
  if (kernel.attention)
    for (const AttentionStep& step : kernel.attention->steps) axes[step.reduction] = bits(step.over);
  return axes;
}

}  // namespace

std::vector<uint64_t> axes_of_values(const Kernel& kernel) {
  const std::vector<uint64_t> reduced = stage_axes(kernel);
  std::vector<uint64_t> known;
  known.reserve(kernel.values.size());
  for (const Scalar& v : kernel.values) {
    uint64_t set = axes_of(v.index, known);
    for (ValueId x : v.operands) set |= known[x];
    for (const Range& g : v.guards) set |= axes_of(g.index, known);
    if (v.kind == ScalarKind::running) set |= known[kernel.reductions[v.slot].value] | reduced[v.slot];
    if (v.kind == ScalarKind::reduction) set |= known[kernel.reductions[v.slot].value] & ~reduced[v.slot];
    known.push_back(set);
  }
  return known;
}

std::vector<uint64_t> reductions_of_values(const Kernel& kernel) {
  std::vector<uint64_t> known;
  known.reserve(kernel.values.size());
  for (const Scalar& v : kernel.values) {
    uint64_t set = v.kind == ScalarKind::reduction || v.kind == ScalarKind::running ? uint64_t{1} << v.slot : 0;
    for (ValueId x : v.operands) set |= known[x];
    for (const Subscript::Dynamic& d : v.index.dynamic) set |= known[d.value];
    for (const Range& g : v.guards)
      for (const Subscript::Dynamic& d : g.index.dynamic) set |= known[d.value];
    known.push_back(set);
  }
  return known;
}

std::vector<bool> needed_by(const Kernel& kernel, const Stage& stage) {
  std::vector<bool> needed(kernel.values.size(), false);
  const auto need = [&](ValueId id) {
    if (id != kNoValue) needed[id] = true;
  };
  const auto need_index = [&](const Subscript& index) {
    for (const Subscript::Dynamic& d : index.dynamic) need(d.value);
  };
  for (const Store& store : stage.stores) need(store.value), need_index(store.index);
  for (uint16_t r : stage.reductions) need(kernel.reductions[r].value), need(kernel.reductions[r].position);
  for (size_t i = kernel.values.size(); i-- > 0;) {
    if (!needed[i]) continue;
    const Scalar& v = kernel.values[i];
    for (ValueId x : v.operands) need(x);
    need_index(v.index);
    for (const Range& g : v.guards) need_index(g.index);
  }
  return needed;
}

}  // namespace einc
