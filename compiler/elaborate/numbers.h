// SPDX-License-Identifier: Apache-2.0
// Arithmetic on weakly typed numbers while compiling. Integers, dims and quotients of them stay exact polynomials, so
// 1/heads or 2*seq - 1 is a formula, not a rounded value; anything else is done in double precision. What is neither
// (the square root of a free dim) is left to graph nodes.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <variant>

#include "compiler/elaborate/context.h"

namespace einc {

enum class NumberFault : uint8_t { needs_nodes, division_by_zero };

// The number an elementwise function gives for numbers. Comparisons and logic give no number: needs_nodes.
std::variant<Number, NumberFault> fold_numbers(MapFn fn, std::span<const Number> operands);

// The value when it does not depend on dims.
std::optional<double> constant_value(const Number& number);
std::optional<Rational> constant_rational(const Number& number);  // also when it was written in double precision but is finite
// As the file would write it: "3", "2*seq", "0.1", "-inf".
std::string describe(const Number& number);

// The formula of an integer number; null of other numbers, tensors and several values.
const Poly* integer_poly(const Value& value);
// A number as the file would write it, a tensor's type, or "several values".
std::string describe_value(Context& context, const Value& value);

// False when the value is known and the dtype cannot hold it: infinity or 1000 in f8e4m3, 70000 in f16, 300 or -1 in u8.
bool representable(const Number& number, DType dtype);

}  // namespace einc
