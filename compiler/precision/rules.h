// SPDX-License-Identifier: Apache-2.0
// The precision rules: which dtype a node gets under a policy, and how its operands' dtypes pull. A value pulls when an
// elementwise node has to follow it: f32 results of reductions pull up, low-precision activations keep what follows low;
// params, constants and integers do neither, an input declared without a dtype follows.
#pragma once
#include <span>
#include <string_view>

#include "compiler/ir/graph.h"

namespace einc {

enum class Pull : uint8_t { neutral, follows, low, high };

struct Decision {
  DType dtype = DType::f32;
  std::string_view reason;
};

// The dtype of activations under a policy, and that of a contraction's operand. fp8 takes e4m3, gradients e5m2.
DType activation_dtype(Policy policy);
DType operand_dtype(Policy policy, Phase contraction, Phase operand);

// An elementwise result (or concat) from its floating operands' pulls.
Decision follow_operands(Policy policy, std::span<const Pull> operands);

}  // namespace einc
