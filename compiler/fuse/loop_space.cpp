// SPDX-License-Identifier: Apache-2.0
#include <algorithm>

#include "compiler/fuse/evaluate.h"

namespace einc {

int LoopSpace::add(Kernel& kernel, int64_t extent, Name name) {
  const size_t i = units_.size();
  if (factors_.size() <= i) factors_.resize(i + 1);
  Unit unit{extent, factors_[i].empty() ? std::vector<int64_t>{extent} : factors_[i], {}, 0};
  int64_t stride = extent;
  for (int64_t factor : unit.factors) {
    stride /= factor;
    if (factor == 1) continue;
    if (kernel.axes.size() >= 60) throw Refused{"more than 60 loops"};
    const auto axis = static_cast<AxisId>(kernel.axes.size());
    kernel.axes.push_back({factor, name});
    unit.index = unit.index + Affine::of_axis(axis, stride);
    unit.axes |= bit(axis);
  }
  units_.push_back(std::move(unit));
  return static_cast<int>(i);
}

void LoopSpace::divide(const SplitNeeded& split) {
  AxisId axis = 0;
  for (size_t u = 0; u < units_.size(); ++u) {
    std::vector<int64_t>& factors = units_[u].factors;
    for (size_t k = 0; k < factors.size(); ++k) {
      if (factors[k] == 1) continue;
      if (axis++ != split.axis) continue;
      factors[k] /= split.inner;
      factors.insert(factors.begin() + static_cast<int64_t>(k) + 1, split.inner);
      factors_[u] = factors;
      return;
    }
  }
}

}  // namespace einc
