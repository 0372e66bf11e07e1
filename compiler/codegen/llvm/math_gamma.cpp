// SPDX-License-Identifier: Apache-2.0
// The logarithm of the gamma function's magnitude, of doubles. Coefficients: scripts/minimax.
#include "compiler/codegen/llvm/math_parts.h"

namespace einc {
namespace {

// lgamma(2 + t) / t for |t| <= 1/2: 2^-54.
constexpr double kGamma[] = {0.42278433509846713,     0.32246703342411276,    -0.067352301053194924,  0.020580808427894892,
                             -0.0073855510290092826,  0.002890510322968528,   -0.0011927538980589765, 0.00050966977354777144,
                             -0.00022315503628135384, 9.9453199867480935e-5,  -4.492306552750818e-5,  2.0551125082814705e-5,
                             -9.4606686282554076e-6,  4.1046279876158171e-6,  -1.9574210441258113e-6, 1.943724564555717e-6,
                             -6.1622789774139756e-7,  -1.7671199050012624e-6, 3.0363392530058261e-8,  1.7213012211236514e-6};

// (lgamma(z) - (z - 1/2) log(z) + z - log(2 pi) / 2) z in 1/z^2 for z >= 8: 2^-58 of 1.
constexpr double kStirling[] = {0.083333333333333079,   -0.0027777777773245215, 0.00079365056258087275,
                                -0.0005951874093782435, 0.00083629788875358381, -0.0016293444232490779};
constexpr double kHalfLog2Pi = 0.91893853320467278;
constexpr int kSteps = 6;  // from 8 down to below 2.5

// For z > 0. Up to 8 by lgamma(z) = lgamma(2 + t) + log of the factors between, or - log(z) or - log(z (z + 1)) from below; above by
// Stirling's series. All of them share one logarithm.
Real of_positive(Real z) {
  Real base = z - 2.0, factors = z.constant(1);
  for (int k = 0; k < kSteps; ++k) {
    const Mask above = 0.5 < base;
    factors = select(above, factors * (base + 1.0), factors);
    base = select(above, base - 1.0, base);
  }
  const Mask below = z < 1.5, least = z < 0.5, far = z >= 8;
  const Real t = select(least, z, select(below, z - 1.0, base));
  const Real argument = select(far, z, select(least, fma(z, z, z), select(below, z, factors)));
  const Real log = math_log(argument);
  const Real near = fma(t, horner(t, kGamma), select(below, -log, log));
  const Real inverse = 1.0 / z;
  const Real series = fma(inverse, horner(inverse * inverse, kStirling), kHalfLog2Pi - 0.5);
  return select(far, fma(z - 0.5, log - 1.0, series), near);
}

}  // namespace

// Below 0 by lgamma(x) = log(pi / |sin(pi x)|) - lgamma(1 - x).
Real math_lgamma(Real x) {
  constexpr double kLogPi = 1.1447298858494002;
  const Mask negative = x < 0;
  const Real a = absolute(x), z = select(negative, 1.0 - x, a), value = of_positive(z);
  const Real turn = a - unary(llvm::Intrinsic::roundeven, a);
  const Real sine = absolute(sin_of_half_turns(turn));
  // Near 0 it is -log|x|, whatever is left of the sine of a subnormal number; where the sine is 0 is a pole.
  const Mask tiny = a < 0x1p-60;
  const Real log = math_log(select(tiny, a, sine));
  const Real reflected = select(sine == 0, kInfinity, select(tiny, a.constant(0), kLogPi) - log - value);
  return select(a == kInfinity, kInfinity, select(negative, reflected, value));
}

}  // namespace einc
