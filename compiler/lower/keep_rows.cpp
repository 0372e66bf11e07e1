// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/keep_rows.h"

#include <algorithm>

#include "compiler/lower/kernel_target.h"
#include "runtime/base/dtype.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

constexpr int64_t kLongestRow = 16384;  // elements, which the second cache holds beside the rows that are read and written
constexpr int64_t kShortestRow = 32;

class Keeper {
 public:
  explicit Keeper(Kernel& kernel) : kernel_(kernel), axes_(axes_of_values(kernel)) {}

  void run() {
    find_costly();
    for (size_t later = 1; later < kernel_.stages.size(); ++later)
      for (size_t first = 0; first < later; ++first)
        if (kernel_.stages[first].axes == kernel_.stages[later].axes && keep(first, later)) break;
  }

 private:
  using Set = std::vector<bool>;  // of values

  void find_costly() {
    for (const Scalar& v : kernel_.values) {
      const bool itself = v.kind == ScalarKind::random || (v.kind == ScalarKind::map && is_transcendental(v.fn));
      costly_.push_back(itself || std::any_of(v.operands.begin(), v.operands.end(), [&](ValueId x) { return costly_[x]; }));
    }
  }

  // Lanes can go along the row: what is read of it lies side by side.
  bool side_by_side(const Set& needed, AxisId along) const {
    for (size_t i = 0; i < needed.size(); ++i) {
      const Scalar& v = kernel_.values[i];
      if (!needed[i] || v.kind != ScalarKind::load || !(axes_[i] & bit(along))) continue;
      if (v.index.affine.coefficient(along) != 1) return false;
      for (const Subscript::Dynamic& d : v.index.dynamic)
        if (axes_[d.value] & bit(along)) return false;
    }
    return true;
  }

  bool keep(size_t first, size_t later) {
    const std::vector<AxisId>& axes = kernel_.stages[first].axes;
    if (axes.empty() || kernel_.stages[first].ordered || kernel_.stages[later].ordered) return false;
    const int64_t count = trips(kernel_, bits(axes));
    if (count > kLongestRow || kernel_.extent(axes.back()) < kShortestRow) return false;
    const Set made = needed_by(kernel_, kernel_.stages[first]), needed = needed_by(kernel_, kernel_.stages[later]);
    if (!side_by_side(made, axes.back()) || !side_by_side(needed, axes.back())) return false;
    const ValueId kept = last_of_both(made, needed, axes.back());
    if (kept == kNoValue || reduces(kernel_.stages[later], kept)) return false;
    const uint16_t row = add_row(kernel_.values[kept].dtype, count);
    const Subscript index = index_of(axes);
    kernel_.stages[first].stores.push_back({row, index, kept, StoreMode::set});
    read_row(kernel_.stages[later], kept, row, index);
    axes_ = axes_of_values(kernel_);
    costly_.resize(kernel_.values.size(), false);
    return true;
  }

  ValueId last_of_both(const Set& made, const Set& needed, AxisId along) const {
    for (ValueId i = static_cast<ValueId>(made.size()); i-- > 0;)
      if (made[i] && needed[i] && costly_[i] && axes_[i] & bit(along) && is_floating(kernel_.values[i].dtype)) return i;
    return kNoValue;
  }

  Set users_of(ValueId kept) const {
    Set users(kernel_.values.size(), false);
    users[kept] = true;
    const auto uses = [&](const Subscript& index) {
      return std::any_of(index.dynamic.begin(), index.dynamic.end(), [&](const Subscript::Dynamic& d) { return users[d.value]; });
    };
    for (size_t i = kept + 1; i < users.size(); ++i) {
      const Scalar& v = kernel_.values[i];
      users[i] = std::any_of(v.operands.begin(), v.operands.end(), [&](ValueId x) { return users[x]; }) || uses(v.index) ||
                 std::any_of(v.guards.begin(), v.guards.end(), [&](const Range& g) { return uses(g.index); });
    }
    return users;
  }

  // A stage whose reductions need the value goes on computing it.
  bool reduces(const Stage& stage, ValueId kept) const {
    const Set users = users_of(kept);
    return std::any_of(stage.reductions.begin(), stage.reductions.end(), [&](uint16_t r) {
      const Accumulation& a = kernel_.reductions[r];
      return users[a.value] || (a.position != kNoValue && users[a.position]);
    });
  }

  uint16_t add_row(DType dtype, int64_t count) {
    kernel_.buffers.push_back({dtype, BufferAccess::scratch, count});
    return static_cast<uint16_t>(kernel_.buffers.size() - 1);
  }

  Subscript index_of(const std::vector<AxisId>& axes) const {
    Affine index;
    int64_t stride = 1;
    for (size_t k = axes.size(); k-- > 0; stride *= kernel_.extent(axes[k])) index = index + Affine::of_axis(axes[k], stride);
    return index;
  }

  // The stage's stores with copies of all that depends on the value, made of what the row holds.
  void read_row(Stage& stage, ValueId kept, uint16_t row, const Subscript& index) {
    const Set users = users_of(kept), needed = needed_by(kernel_, stage);
    std::vector<ValueId> now(users.size());
    for (ValueId i = 0; i < now.size(); ++i) now[i] = i;
    Scalar load;
    load.kind = ScalarKind::load;
    load.dtype = kernel_.values[kept].dtype;
    load.slot = row;
    load.index = index;
    now[kept] = add(std::move(load));
    const auto rename = [&](Subscript& subscript) {
      for (Subscript::Dynamic& d : subscript.dynamic) d.value = now[d.value];
    };
    for (ValueId i = kept + 1; i < users.size(); ++i) {
      if (!users[i] || !needed[i]) continue;
      Scalar v = kernel_.values[i];
      if (divides_by_own_sum(v, kept)) v.fn = MapFn::mul, v.operands[1] = reciprocal(v.operands[1]);
      for (ValueId& x : v.operands)
        if (x < now.size()) x = now[x];
      rename(v.index);
      for (Range& g : v.guards) rename(g.index);
      now[i] = add(std::move(v));
    }
    for (Store& s : stage.stores) s.value = now[s.value], rename(s.index);
  }

  ValueId add(Scalar value) {
    kernel_.values.push_back(std::move(value));
    return static_cast<ValueId>(kernel_.values.size() - 1);
  }

  // exp(x) / sum of exp(x): a sum of positive numbers whose reciprocal is finite wherever theirs are.
  bool divides_by_own_sum(const Scalar& v, ValueId kept) const {
    if (v.kind != ScalarKind::map || v.fn != MapFn::div || v.dtype != DType::f32 || v.operands[0] != kept) return false;
    const Scalar& dividend = kernel_.values[kept];
    const Scalar& divisor = kernel_.values[v.operands[1]];
    if (dividend.kind != ScalarKind::map || dividend.fn != MapFn::exp) return false;
    return divisor.kind == ScalarKind::reduction && divisor.dtype == DType::f32 && kernel_.reductions[divisor.slot].fold == Fold::sum &&
           kernel_.reductions[divisor.slot].value == kept;
  }

  ValueId reciprocal(ValueId id) {
    Scalar one, inverse;
    one.real = 1;
    inverse.kind = ScalarKind::map;
    inverse.fn = MapFn::div;
    inverse.operands = {add(std::move(one)), id};
    return add(std::move(inverse));
  }

  Kernel& kernel_;
  std::vector<uint64_t> axes_;
  Set costly_;
};

}  // namespace

void keep_rows(Kernel& kernel) {
  if (kernel.contraction || kernel.attention || kernel.sequence) return;
  Keeper(kernel).run();
}

int64_t row_bytes(const BufferUse& row) { return round_up(row.count * bytes_of(row.dtype), kCacheLine); }

int64_t row_bytes(const Kernel& kernel) {
  int64_t bytes = 0;
  for (const BufferUse& use : kernel.buffers)
    if (use.access == BufferAccess::scratch) bytes += row_bytes(use);
  return bytes;
}

}  // namespace einc
