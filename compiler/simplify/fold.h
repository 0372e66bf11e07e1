// SPDX-License-Identifier: Apache-2.0
// Arithmetic of scalar constants. Values in the dims stay exact (2 * 1/(batch*embed) is 2*batch^-1*embed^-1); transcendental
// functions of numbers give doubles. Doubles that are small fractions of a power of two count as exact.
#pragma once
#include <optional>
#include <span>

#include "compiler/ir/graph.h"

namespace einc {

// A double that is k/2^n for n <= 20 becomes that fraction; other values stay.
ScalarValue exact_value(const ScalarValue& value);
// fn of constants as a constant of `dtype`; nullopt when it has no value that holds for all dims (sqrt(head), 0.1*batch), or
// when dtype rounds more than f32.
std::optional<ScalarValue> fold_constants(MapFn fn, std::span<const ScalarValue> operands, DType dtype);

}  // namespace einc
