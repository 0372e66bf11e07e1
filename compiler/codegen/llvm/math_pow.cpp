// SPDX-License-Identifier: Apache-2.0
// pow. Coefficients: scripts/minimax.
#include <limits>

#include "compiler/codegen/llvm/math_parts.h"

namespace einc {
namespace {

constexpr double kLn2High = 0.6931471805601177, kLn2Low = -1.7239444525614835e-13;
constexpr double kThirdHigh = 0x1.5555555555555p-2, kThirdLow = 1.850371707708594e-17;
constexpr double kHugeExponent = 0x1p64;  // every base but 1 over- or underflows long before

// log2(1 + f) / f for 1 + f in [sqrt(1/2), sqrt(2)]: 2^-35.4.
constexpr double kLog2[] = {1.4426950408687138,   -0.72134752135840552, 0.48089836100051053,  -0.36067357434409297, 0.288537320042412,
                            -0.24045896941741818, 0.20617693504931778,  -0.18016179706865545, 0.15866200714526094,  -0.14463497535774242,
                            0.14656561150327155,  -0.13701007067862786, 0.067949023198662487};

// (2^r - 1) / r on [-1/2, 1/2]: 2^-26.9, relative to 2^r.
constexpr double kExp2[] = {0.69314720298034327,   0.24022637305762198,   0.055503293781792987,
                            0.0096188973428641394, 0.0013401681479535629, 0.00015396922457031821};

// (atanh(s) / s - 1 - s^2 / 3) / s^4 in s^2: 2^-73.
constexpr double kAtanh[] = {0.19999999999999987,  0.14285714285723522,  0.11111111108535056,  0.090909094635560211,
                             0.076922765124833772, 0.066682321386691348, 0.058359299671271993, 0.06006732191335129};

// x = 2^e * (1 + f) with 1 + f in [sqrt(1/2), sqrt(2)], for normal doubles.
struct Decomposed {
  Real e, f;
};

Decomposed decompose(Real x) {
  const Bits exponent = (x.bits() - 0x3FE6A09E667F3BCD) & (~uint64_t{0} << 52);
  return {to_real(arithmetic_shift(exponent, 52), x), as_real(x.bits() - exponent, x) - 1.0};
}

// x^y of floats in (0, infinity), in double throughout.
Real power_float(Real x, Real y) {
  const Decomposed parts = decompose(to_double(x));
  const Real product = to_double(y) * fma(parts.f, horner(parts.f, kLog2), parts.e);
  const Real bounded = at_most(at_least(product, -200), 200);
  const Real shifted = bounded + (0x1.8p52 + 1023);
  const Real r = bounded - (shifted - (0x1.8p52 + 1023));
  return to_float(fma(r, horner(r, kExp2), 1.0) * as_real(shifted.bits() << 52, r));
}

// log(x) of a normal double to some 2^-65 of itself.
TwoParts precise_log(Real x) {
  const Decomposed parts = decompose(x);
  const Real f = parts.f;
  const TwoParts denominator = exact_sum_of_larger(f.constant(2), f);
  const Real s = f / denominator.high;
  const Real s_low = fma(-s, denominator.low, fma(-s, denominator.high, f)) / denominator.high;
  // atanh(s) = s + s (s^2 / 3 + s^4 * ...)
  const TwoParts square = exact_product(s, s), third = exact_product(square.high, s.constant(kThirdHigh));
  const Real third_low = fma(square.high, kThirdLow, fma(fma(s * 2.0, s_low, square.low), kThirdHigh, third.low));
  const TwoParts series = exact_sum_of_larger(third.high, square.high * square.high * horner(square.high, kAtanh));
  const TwoParts bent = exact_product(s, series.high);
  const TwoParts half = exact_sum_of_larger(s, bent.high);
  const Real half_low = half.low + fma(s, series.low + third_low, fma(s_low, series.high, bent.low)) + s_low;
  const TwoParts total = exact_sum_of_larger(parts.e * kLn2High, half.high * 2.0);
  return {total.high, total.low + fma(parts.e, kLn2Low, half_low * 2.0)};
}

Real power_double(Real x, Real y) {
  const Mask subnormal = x < 0x1p-1022;
  const TwoParts log = precise_log(select(subnormal, x * 0x1p54, x));
  // log(2^54) as the sum of two doubles, where x was scaled.
  const TwoParts shifted = exact_sum_of_larger(log.high, select(subnormal, x.constant(-37.42994775023705), 0));
  const Real low = log.low + shifted.low + select(subnormal, x.constant(1.1902053746983427e-15), 0);
  const TwoParts power = exact_product(y, shifted.high);
  const Mask regular = absolute(power.high) < 800;
  const Real bounded = at_most(at_least(power.high, -746), 710);
  return product(scaled_exp(bounded, select(regular, fma(y, low, power.low), 0)));
}

// y as an integer where it is one: past the bound, every number is even.
struct Parity {
  Mask integer, odd;
};

Parity parity_of(Real y) {
  llvm::IRBuilderBase& builder = *y.builder;
  const Real bounded = select(absolute(y) < y.pick(0x1p30, 0x1p62), y, y.pick(0x1p30, 0x1p62));
  const Bits integer{y.builder, builder.CreateFPToSI(bounded.value, y.bits().value->getType())};
  const Mask whole = to_real(integer, y) == bounded;
  return {whole, whole & ((integer & 1) == 1)};
}

}  // namespace

Real math_pow(Real x, Real y) {
  const Real base = absolute(x);
  const Real exponent = at_most(at_least(y, -kHugeExponent), kHugeExponent);
  const Real finite = x.is_double() ? power_double(base, exponent) : power_float(base, exponent);
  const Mask zero = base == 0, infinite = base == kInfinity;
  const Mask grows = (zero & (y < 0)) | (infinite & (0 < y));
  const Real magnitude = select(zero | infinite, select(grows, x.constant(kInfinity), 0), finite);
  const Parity parity = parity_of(y);
  const Real signed_result = select(parity.odd, with_sign_of(magnitude, x), magnitude);
  const Mask nowhere = (x < 0) & !parity.integer & !infinite;
  const Real real = select(nowhere | is_nan(x) | is_nan(y), kNaN, signed_result);
  return select((x == 1) | (y == 0), 1, real);
}

}  // namespace einc
