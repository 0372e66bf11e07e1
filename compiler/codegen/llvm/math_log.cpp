// SPDX-License-Identifier: Apache-2.0
// log, log1p, softplus. Coefficients: scripts/minimax.
#include <limits>

#include "compiler/codegen/llvm/math_parts.h"

namespace einc {
namespace {

// (log(1 + f) - f + f^2 / 2) / f^3 for 1 + f in [sqrt(1/2), sqrt(2)]: 2^-27.3, relative to log(1 + f).
constexpr double kLog32[] = {0.333333313, -0.250008225, 0.200012594, -0.16623345, 0.142010733, -0.131595492, 0.127656788, -0.076410763};

// (log((1 + s) / (1 - s)) - 2 s) / s^3 in s^2, the same range: 2^-59.
constexpr double kLog64[] = {0.66666666666667396, 0.39999999999376612, 0.28571428751627181, 0.2222219755213358,
                             0.181836209122515,   0.15312518420371354, 0.1481207579715455};

uint64_t bits_of_sqrt_half(const Real& like) { return like.is_double() ? 0x3FE6A09E667F3BCD : 0x3F3504F3; }

// The exponent e of x = 2^e * m with m in [sqrt(1/2), sqrt(2)), still in its place above the mantissa.
Bits exponent_in_place(Real x) {
  const Bits shifted = x.bits() - bits_of_sqrt_half(x);
  return shifted & (~uint64_t{0} << x.mantissa_bits());
}

// e ln 2 + log(1 + f)
Real log_of_parts(Real e, Real f) {
  const Real high = e.pick(0.693145751953125, 0.6931471805601177), low = e.pick(1.4286068203094173e-06, -1.7239444525614835e-13);
  if (!f.is_double()) {
    const Real tail = fma(f * f, fma(horner(f, kLog32), f, -0.5), e * low);
    return fma(e, high, f + tail);
  }
  const Real s = f / (f + 2.0), z = s * s, half_square = f * f * 0.5;
  const Real tail = half_square - fma(s, fma(z, horner(z, kLog64), half_square), e * low);
  return fma(e, high, f - tail);
}

// log1p of x > -1.
Real log1p_in_range(Real x) {
  const Real sum = x + 1.0;
  const Bits exponent = exponent_in_place(sum);
  // 4 * 2^-e, which is normal for every e.
  const Real scale = as_real((sum.constant(4).bits() - exponent), x);
  const Real f = fma(x * scale, 0.25, fma(scale, 0.25, -1.0));
  return log_of_parts(to_real(arithmetic_shift(exponent, x.mantissa_bits()), x), f);
}

}  // namespace

Real math_log(Real x) {
  const double least_normal = x.is_double() ? 0x1p-1022 : 0x1p-126;
  const Mask subnormal = x < least_normal;
  const Real normal = select(subnormal, x * x.pick(0x1p23, 0x1p52), x);
  const Bits exponent = exponent_in_place(normal);
  const Real f = as_real(normal.bits() - exponent, x) - 1.0;
  const Real e = to_real(arithmetic_shift(exponent, x.mantissa_bits()), x) - select(subnormal, x.pick(23, 52), 0);
  const Real finite = select(x < kInfinity, log_of_parts(e, f), x);
  return select(x <= 0, select(x == 0, -kInfinity, x.constant(kNaN)), finite);
}

Real math_log1p(Real x) {
  const Real finite = select(x < kInfinity, log1p_in_range(x), x);
  return with_sign_of(select(x <= -1, select(x == -1, -kInfinity, x.constant(kNaN)), finite), x);
}

Real math_softplus(Real x) { return select(0 < x, x, 0.0) + log1p_in_range(product(scaled_exp(negative_in_range(x)))); }

}  // namespace einc
