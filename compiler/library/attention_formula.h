// SPDX-License-Identifier: Apache-2.0
// Reads the values of an attention kernel as the formulas of softmax and its gradient.
#pragma once
#include <optional>
#include <vector>

#include "compiler/lower/kernel.h"

namespace einc {

class AttentionFormula {
 public:
  explicit AttentionFormula(const Kernel& kernel) : kernel_(kernel) {}

  // The step of that part, if it is the only one; of several, in their order.
  std::vector<const AttentionStep*> steps(AttentionPart part) const;

  // `value` times `scale`, rounded or not; `fill` instead where `causal` and the key lies behind the row.
  struct Peeled {
    ValueId value = kNoValue;
    double scale = 1;
    bool causal = false;
    friend bool operator==(const Peeled&, const Peeled&) = default;
  };
  Peeled peel(ValueId id, double fill) const;
  // Without roundings to 16 or 32 bits.
  ValueId unrounded(ValueId id) const;

  // exp(x - max) / sum.
  struct Probability {
    ValueId x = kNoValue, exponential = kNoValue, max = kNoValue, sum = kNoValue;
  };
  std::optional<Probability> probability(ValueId id) const;
  // exp(x - max), the numerator alone or a weight whose denominator is in `max` (fuse/row_statistics).
  std::optional<Probability> exponential(ValueId id) const;

  std::optional<uint16_t> reduction(ValueId id) const;  // that the value is, rounded or not
  bool is_map(ValueId id, MapFn fn) const;
  // The factors, in either order, where `is_first` holds of one.
  template <class IsFirst>
  std::optional<ValueId> other_factor(ValueId id, IsFirst is_first) const {
    if (!is_map(id, MapFn::mul)) return std::nullopt;
    const auto& x = kernel_.values[id].operands;
    if (is_first(x[0])) return x[1];
    if (is_first(x[1])) return x[0];
    return std::nullopt;
  }

 private:
  std::optional<double> constant(ValueId id) const;
  std::optional<double> computed(const Scalar& v) const;
  bool is_index(ValueId id, AxisId axis) const;
  bool compares(ValueId id, MapFn fn, AxisId left, AxisId right) const;

  const Kernel& kernel_;
};

}  // namespace einc
