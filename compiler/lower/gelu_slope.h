// SPDX-License-Identifier: Apache-2.0
// GELU's slope as differentiation writes it: Phi(x) + x phi(x), of the normal distribution and its density. Known as a whole, it
// takes one exponential instead of three.
#pragma once
#include <optional>

#include "compiler/lower/kernel.h"

namespace einc {

// x, where `sum` is that slope at it, all in f32.
std::optional<ValueId> argument_of_gelu_slope(const Kernel& kernel, const Scalar& sum);

}  // namespace einc
