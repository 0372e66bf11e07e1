// SPDX-License-Identifier: Apache-2.0
#include "compiler/precision/rules.h"

#include <algorithm>

namespace einc {

DType activation_dtype(Policy policy) {
  switch (policy) {
    case Policy::inherit:
    case Policy::f32:
    case Policy::tf32:
      return DType::f32;
    case Policy::f16:
      return DType::f16;
    case Policy::bf16:
    case Policy::fp8:
      return DType::bf16;
  }
  return DType::f32;
}

DType operand_dtype(Policy policy, Phase contraction, Phase operand) {
  if (policy != Policy::fp8) return activation_dtype(policy);
  return contraction == Phase::backward && operand == Phase::backward ? DType::f8e5m2 : DType::f8e4m3;
}

Decision follow_operands(Policy policy, std::span<const Pull> operands) {
  const DType low = activation_dtype(policy);
  if (low == DType::f32) return {DType::f32, "policy f32"};
  auto has = [&](Pull pull) { return std::find(operands.begin(), operands.end(), pull) != operands.end(); };
  if (has(Pull::high)) return {DType::f32, "an operand is f32: softmax, normalisation or a reduction"};
  if (has(Pull::low) || has(Pull::follows)) return {low, "follows its operands"};
  return {DType::f32, "only params and constants"};
}

}  // namespace einc
