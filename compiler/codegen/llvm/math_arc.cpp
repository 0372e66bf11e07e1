// SPDX-License-Identifier: Apache-2.0
// atan2, and asin, acos and atan by it, of doubles. Coefficients: scripts/minimax.
#include "compiler/codegen/llvm/math_parts.h"

namespace einc {
namespace {

// (atan(t) - t) / t^3 in t^2 for |t| <= 1/4: 2^-63.
constexpr double kArcTan[] = {-0.3333333333333332,   0.1999999999999148,    -0.14285714283805251,
                              0.11111110902153976,   -0.090908961602576582, 0.076918236428976869,
                              -0.066554535592565356, 0.057242171688375788,  -0.039974289680550619};

// Angles in two parts.
constexpr double kHalf = 0.46364760900080609, kHalfLow = 2.2698777452961687e-17;     // atan(1/2)
constexpr double kEighth = 0.78539816339744828, kEighthLow = 3.061616997868383e-17;  // atan(1)
constexpr double kQuarter = 1.5707963267948966, kQuarterLow = 6.123233995736766e-17;
constexpr double kStraight = 3.1415926535897931, kStraightLow = 1.2246467991473532e-16;

// atan(low / high) for 0 <= low <= high: c + atan(t) with tan(c) = 0, 1/2 or 1, whichever is nearest.
TwoParts octant(Real low, Real high) {
  const Mask first = low < high * 0.25, second = low < high * 0.75;
  const Real tangent = select(first, low.constant(0), select(second, low.constant(0.5), 1.0));
  const Real t = fma(-tangent, high, low) / fma(tangent, low, high), z = t * t;
  const Real angle = select(first, low.constant(0), select(second, low.constant(kHalf), kEighth));
  const Real angle_low = select(first, low.constant(0), select(second, low.constant(kHalfLow), kEighthLow));
  const TwoParts sum = exact_sum_of_larger(angle, t);
  return select_first(first, {t, t * z * horner(z, kArcTan)}, {sum.high, sum.low + fma(t * z, horner(z, kArcTan), angle_low)});
}

}  // namespace

Real math_atan2(Real y, Real x) {
  const Real up = absolute(y), along = absolute(x);
  const Mask steep = along < up, unordered = is_nan(x) | is_nan(y);
  Real low = select(steep, along, up), high = select(steep, up, along);
  // Of equal numbers, zeros and infinities too, the quotient is 1, or 0 where both are 0; large ones leave room for a sum, small ones
  // for their parts.
  const Mask none = high == 0, equal = low == high;
  low = select(none, 0.0, select(equal, 1.0, low)), high = select(equal, 1.0, high);
  const Mask endless = high == kInfinity;
  low = select(endless, 0.0, low), high = select(endless, 1.0, high);
  const Real scale = select(0x1p1000 < high, low.constant(0.25), select(high < 0x1p-900, low.constant(0x1p200), 1.0));
  low = low * scale, high = high * scale;
  TwoParts angle = octant(low, high);
  const auto less = [](double whole, double whole_low, TwoParts part) {
    const TwoParts difference = exact_sum_of_larger(part.high.constant(whole), -part.high);
    return TwoParts{difference.high, difference.low + (whole_low - part.low)};
  };
  angle = select_first(steep, less(kQuarter, kQuarterLow, angle), angle);
  const Mask behind = (x.bits() >> 63) != 0;
  angle = select_first(behind, less(kStraight, kStraightLow, angle), angle);
  return select(unordered, x + y, with_sign_of(angle.high + angle.low, y));
}

Real math_atan(Real x) { return math_atan2(x, x.constant(1)); }

// By the right triangle whose longest side is 1: its other side is exact where x is near 1.
Real math_asin(Real x) { return math_atan2(x, square_root((1.0 - x) * (x + 1.0))); }
Real math_acos(Real x) { return math_atan2(square_root((1.0 - x) * (x + 1.0)), x); }

}  // namespace einc
