// SPDX-License-Identifier: Apache-2.0
// Bounds on what a step stores, by interval arithmetic over the expressions of its updates: a step whose gradients are finite and small
// enough needs no other proof that what it stores is finite. Plain data, evaluated by the processor before each step is committed.
#pragma once
#include <array>
#include <cstdint>
#include <limits>
#include <span>
#include <vector>

#include "runtime/base/dtype.h"

namespace einc {

// All values between the two, none of them NaN; unbounded values may also be NaN.
struct Interval {
  double low = -std::numeric_limits<double>::infinity(), high = std::numeric_limits<double>::infinity();
  static Interval point(double x) { return {x, x}; }
  static Interval within(double x) { return {-x, x}; }
  bool is_bounded() const { return low > -std::numeric_limits<double>::infinity() && high < std::numeric_limits<double>::infinity(); }
  friend bool operator==(const Interval&, const Interval&) = default;
};

// clang-format off
enum class BoundFn : uint8_t {
  constant,   // `value`
  between,    // -value .. value
  number,     // the one element of `buffer`
  magnitude,  // no element is larger than that of `buffer`
  source,     // the elements of a param or state, in `buffer`
  unknown,
  add, sub, mul, div, pow, minimum, maximum,
  equal, not_equal, less, less_equal, greater, greater_equal,
  logical_and, logical_or, logical_not, where,
  neg, abs, sign, relu, exp, expm1, log, log1p, sqrt, rsqrt, sin, cos, tanh, sigmoid, erf, gelu, gelu_tanh, silu, softplus,
  floor_div, remainder, clamp, floor, ceil, round, trunc, tan, asin, acos, atan, atan2, sinh, cosh, erfc, erfinv, lgamma,
  cast,
};
// clang-format on

// Operands are earlier ops.
struct BoundOp {
  BoundFn fn = BoundFn::unknown;
  DType dtype = DType::f32;  // that results are rounded to
  std::array<uint32_t, 3> operands{};
  double value = 0;
  uint32_t buffer = 0;
  bool operator==(const BoundOp&) const = default;
};

// The result of each op; `leaves[i]` is that of op i where it reads a buffer. A result that the op's dtype cannot hold, or that may be
// NaN, is unbounded, and so is what is made of it, but for a `where` that is known to take its other operand.
std::vector<Interval> evaluate_bounds(std::span<const BoundOp> ops, std::span<const Interval> leaves);

}  // namespace einc
