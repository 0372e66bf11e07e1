// SPDX-License-Identifier: Apache-2.0
// The functions of math.h as formulas, and the pieces that they share.
#pragma once
#include <limits>

#include "compiler/codegen/llvm/lanes.h"

namespace einc {

Real math_exp(Real x);
Real math_expm1(Real x);
Real math_tanh(Real x);
Real math_sigmoid(Real x);
Real math_silu(Real x);
Real math_gelu_tanh(Real x);
Real math_log(Real x);
Real math_log1p(Real x);
Real math_softplus(Real x);
Real math_erf(Real x);
Real math_gelu(Real x);
Real math_gelu_slope(Real x);
Real math_sin(Real x);
Real math_cos(Real x);
Real math_pow(Real x, Real y);
Real math_tan(Real x);

// Of doubles alone.
Real math_asin(Real x);
Real math_acos(Real x);
Real math_atan(Real x);
Real math_atan2(Real y, Real x);
Real math_sinh(Real x);
Real math_cosh(Real x);
Real math_erfc(Real x);
Real math_erfinv(Real x);
Real math_lgamma(Real x);
// sin(pi x) for |x| <= 1/2.
Real sin_of_half_turns(Real x);
// (e^x - 1) / 2 for x between the bounds of math_expm1.
Real half_expm1(Real x);

constexpr double kInfinity = std::numeric_limits<double>::infinity(), kNaN = std::numeric_limits<double>::quiet_NaN();

// A value in two parts, the second below half an ulp of the first. Sums and products are exact (Dekker 1971, Knuth 4.2.2).
struct TwoParts {
  Real high, low;
};
inline TwoParts exact_product(Real a, Real b) {
  const Real product = a * b;
  return {product, fma(a, b, -product)};
}
inline TwoParts exact_sum(Real a, Real b) {
  const Real sum = a + b, of_b = sum - a;
  return {sum, (a - (sum - of_b)) + (b - of_b)};
}
// Where |a| >= |b|, or a is 0.
inline TwoParts exact_sum_of_larger(Real a, Real b) {
  const Real sum = a + b;
  return {sum, b - (sum - a)};
}

inline TwoParts select_first(Mask when, TwoParts yes, TwoParts no) {
  return {select(when, yes.high, no.high), select(when, yes.low, no.low)};
}

// mantissa * root, where neither is subnormal or infinite even when their product is.
struct Scaled {
  Real mantissa, root;
};
inline Real product(const Scaled& parts) { return parts.mantissa * parts.root; }

// e^x, and e^(x + low) with low below an ulp of x, for x between the bounds of math_exp.
Scaled scaled_exp(Real x);
Scaled scaled_exp(Real x, Real low);

// -|x|, but not below the least x that scaled_exp takes.
Real negative_in_range(Real x);

}  // namespace einc
