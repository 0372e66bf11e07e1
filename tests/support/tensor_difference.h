// SPDX-License-Identifier: Apache-2.0
// How far two tensors of an independent origin are apart.
#pragma once
#include <algorithm>
#include <cmath>
#include <string>

#include <fmt/format.h>

#include "compiler/ir/tensor.h"

namespace einc {

inline double largest(const Tensor& t) {
  double most = 0;
  for (int64_t i = 0; i < t.count(); ++i) most = std::max(most, std::fabs(t.real_at(i)));
  return most;
}

// Within `tolerance` of the largest element.
inline std::string difference(const Tensor& found, const Tensor& wanted, double tolerance) {
  if (found.shape != wanted.shape) return "shapes differ";
  const double bound = tolerance * std::max(largest(wanted), 1e-6);
  for (int64_t i = 0; i < wanted.count(); ++i) {
    const double f = found.real_at(i), w = wanted.real_at(i);
    if (std::isnan(w) ? std::isnan(f) : std::fabs(f - w) <= bound) continue;
    return fmt::format("{} is {}, not {}", describe_position(wanted.shape, i), f, w);
  }
  return "";
}

}  // namespace einc
