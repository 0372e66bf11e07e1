// SPDX-License-Identifier: Apache-2.0
// A coordinate is a number in memory whose range a check states: it is tried from 0 to that. Values are worked out one after the other,
// each once for a point, since an expression of shared values has more paths than can be gone.
#include "compiler/lower/point_values.h"

#include "compiler/ir/map_value.h"
#include "compiler/ir/tensor.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr int64_t kMostNumbers = 1 << 16;

class PointEvaluator {
 public:
  PointEvaluator(const Kernel& kernel, std::vector<ValueId> values)
      : kernel_(kernel), needed_(kernel.values.size(), false), numbers_(kernel.values.size(), 0), place_(kernel.axes.size(), 0) {
    made_.values = std::move(values);
  }

  std::optional<PointValues> run() {
    const std::vector<uint64_t> axes = axes_of_values(kernel_);
    for (const ValueId id : made_.values) {
      if (id == kNoValue) continue;
      if (!find_coordinate(id, false)) return std::nullopt;
      made_.axes |= axes[id];
    }
    for (AxisId axis = 0; axis < kernel_.axes.size(); ++axis)
      if (made_.axes >> axis & 1) {
        if (made_.points > kMostNumbers / kernel_.extent(axis)) return std::nullopt;
        made_.points *= kernel_.extent(axis);
      }
    if (made_.devices > kMostNumbers / made_.points) return std::nullopt;
    for (device_ = 0; device_ < made_.devices; ++device_)
      for (int64_t point = 0; point < made_.points; ++point) {
        enter(point);
        for (ValueId id = 0; id < numbers_.size(); ++id)
          if (needed_[id]) numbers_[id] = evaluate(kernel_.values[id]);
        for (const ValueId id : made_.values) made_.numbers.push_back(id == kNoValue ? 0 : numbers_[id]);
      }
    return std::move(made_);
  }

 private:
  void enter(int64_t point) {
    for (size_t axis = kernel_.axes.size(); axis-- > 0;)
      if (made_.axes >> axis & 1) {
        place_[axis] = point % kernel_.axes[axis].extent;
        point /= kernel_.axes[axis].extent;
      }
  }

  // False: it follows from something else, too.
  bool find_coordinate(ValueId id, bool is_checked) {
    const Scalar& v = kernel_.values[id];
    if (is_floating(v.dtype) || !v.guards.empty()) return false;
    if (needed_[id] && v.kind != ScalarKind::load) return true;
    needed_[id] = true;
    for (const Subscript::Dynamic& d : v.index.dynamic)
      if (!find_coordinate(d.value, false)) return false;
    switch (v.kind) {
      case ScalarKind::constant:
      case ScalarKind::index:
        return true;
      case ScalarKind::load:
        return is_checked && v.index.affine.terms.empty() && v.index.dynamic.empty();
      case ScalarKind::checked: {
        const ValueId coordinate = v.operands[0];
        if (kernel_.values[coordinate].kind != ScalarKind::load) return find_coordinate(coordinate, false);
        if (v.integer <= 0 || (coordinate_ != kNoValue && (coordinate_ != coordinate || made_.devices != v.integer))) return false;
        coordinate_ = coordinate, made_.devices = v.integer;
        return find_coordinate(coordinate, true);
      }
      case ScalarKind::map:
        if (!is_certain(v)) return false;
        [[fallthrough]];
      case ScalarKind::quotient:
      case ScalarKind::remainder:
      case ScalarKind::cast:
        for (const ValueId x : v.operands)
          if (!find_coordinate(x, false)) return false;
        return true;
      case ScalarKind::random:
      case ScalarKind::in_range:
      case ScalarKind::reduction:
      case ScalarKind::running:
        return false;
    }
    return false;
  }

  // Divides by nothing that could be 0.
  bool is_certain(const Scalar& v) const {
    if (v.fn == MapFn::pow) return false;
    if (v.fn != MapFn::floor_div && v.fn != MapFn::remainder) return true;
    const Scalar& divisor = kernel_.values[v.operands[1]];
    return divisor.kind == ScalarKind::constant && divisor.integer != 0;
  }

  int64_t evaluate(const Scalar& v) const {
    const auto x = [&](size_t k) { return k < v.operands.size() ? numbers_[v.operands[k]] : 0; };
    switch (v.kind) {
      case ScalarKind::constant:
        return v.integer;
      case ScalarKind::index: {
        int64_t sum = v.index.affine.constant;
        for (const Affine::Term& t : v.index.affine.terms) sum += t.coefficient * place_[t.axis];
        for (const Subscript::Dynamic& d : v.index.dynamic) sum += d.coefficient * numbers_[d.value];
        return sum;
      }
      case ScalarKind::load:
        return device_;
      case ScalarKind::quotient:
        return x(0) / v.integer;
      case ScalarKind::remainder:
        return x(0) % v.integer;
      case ScalarKind::map:
        return wrap_integer(v.dtype, map_integer(v.fn, x(0), x(1), x(2)));
      case ScalarKind::cast:
        return wrap_integer(v.dtype, x(0));
      case ScalarKind::checked:
        return x(0);
      case ScalarKind::random:
      case ScalarKind::in_range:
      case ScalarKind::reduction:
      case ScalarKind::running:
        break;
    }
    EINC_CHECK(false, "a value that is no number of a point");
    return 0;
  }

  const Kernel& kernel_;
  PointValues made_;
  ValueId coordinate_ = kNoValue;  // what is read of memory
  int64_t device_ = 0;
  std::vector<bool> needed_;      // by value
  std::vector<int64_t> numbers_;  // likewise, at the point in question
  std::vector<int64_t> place_;    // by axis
};

}  // namespace

std::optional<PointValues> point_values(const Kernel& kernel, std::vector<ValueId> values) {
  return PointEvaluator(kernel, std::move(values)).run();
}

}  // namespace einc
