// SPDX-License-Identifier: Apache-2.0
// Numbers of a kernel that are others times a power of two: whoever multiplies them may do that once, later, without other bits. Only what
// is below the normal numbers before or behind the factor differs.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"

namespace einc {

// What is made of constants alone, as generated code has it: each step in f32.
std::optional<double> constant_number(const Kernel& kernel, ValueId id);
bool is_power_of_two(double x);

// `value` * factor; with a mask where that holds, else `otherwise`, which is 0 or infinite and so its own multiple.
struct ScaledValue {
  ValueId value = kNoValue, mask = kNoValue, otherwise = kNoValue;
  double factor = 1;  // above 0
};
std::optional<ScaledValue> scaled_value(const Kernel& kernel, ValueId id);

}  // namespace einc
