// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/scaled_value.h"

#include <cmath>

#include "compiler/ir/map_value.h"
#include "runtime/base/float_format.h"

namespace einc {

std::optional<double> constant_number(const Kernel& kernel, ValueId id) {
  const Scalar& v = kernel.values[id];
  if (v.dtype != DType::f32) return std::nullopt;
  if (v.kind == ScalarKind::constant) return round_to_format(DType::f32, v.real);
  if (v.kind != ScalarKind::map || v.operands.size() > 2 || is_comparison(v.fn)) return std::nullopt;
  double x[2] = {};
  for (size_t i = 0; i < v.operands.size(); ++i) {
    const auto number = constant_number(kernel, v.operands[i]);
    if (!number) return std::nullopt;
    x[i] = *number;
  }
  return round_to_format(DType::f32, map_value(v.fn, x[0], x[1]));
}

bool is_power_of_two(double x) {
  int exponent = 0;
  return std::isfinite(x) && std::fabs(std::frexp(x, &exponent)) == 0.5;
}

std::optional<ScaledValue> scaled_value(const Kernel& kernel, ValueId id) {
  const Scalar& v = kernel.values[id];
  if (v.kind != ScalarKind::map || v.dtype != DType::f32) return std::nullopt;
  if (v.fn == MapFn::where) {
    const auto otherwise = constant_number(kernel, v.operands[2]);
    auto scaled = scaled_value(kernel, v.operands[1]);
    if (!scaled || scaled->mask != kNoValue || !otherwise || !(*otherwise == 0 || std::isinf(*otherwise))) return std::nullopt;
    scaled->mask = v.operands[0], scaled->otherwise = v.operands[2];
    return scaled;
  }
  if (v.fn != MapFn::mul) return std::nullopt;
  for (const size_t of : {0, 1}) {
    const auto factor = constant_number(kernel, v.operands[1 - of]);
    if (factor && *factor > 0 && is_power_of_two(*factor)) return ScaledValue{v.operands[of], kNoValue, kNoValue, *factor};
  }
  return std::nullopt;
}

}  // namespace einc
