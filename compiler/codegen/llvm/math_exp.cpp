// SPDX-License-Identifier: Apache-2.0
// exp and what is made from it. Coefficients: scripts/minimax.
#include "compiler/codegen/llvm/math_parts.h"

namespace einc {
namespace {

constexpr double kLog2E = 1.4426950408889634;

// (e^r - 1) / r on [-ln 2, ln 2]: 2^-25.2 in float, 2^-55.1 in double, relative to e^r.
constexpr double kWide32[] = {1.0, 0.500000894, 0.166667372, 0.0416573174, 0.00832786784, 0.00141662685, 0.00020844418};
constexpr double kWide64[] = {0.99999999999999989,   0.49999999999999895,   0.16666666666667407,    0.041666666666710296,
                              0.0083333333332037372, 0.0013888888882895114, 0.00019841269935249009, 2.4801591083339116e-5,
                              2.7557287046073125e-6, 2.755611452582094e-7,  2.5057151695439093e-8,  2.1065139116284153e-9,
                              1.5807772395407849e-10};
constexpr Coefficients kWideExp{kWide32, kWide64};

// (e^r - 1 - r) / r^2 on [-ln 2 / 2, ln 2 / 2]: 2^-26 and 2^-61, relative to e^r - 1.
constexpr double kNarrow32[] = {0.49999997, 0.166665375, 0.0416677408, 0.00836731866, 0.00138378644};
constexpr double kNarrow64[] = {0.5,
                                0.16666666666666677,
                                0.041666666666666671,
                                0.008333333333321721,
                                0.0013888888888900454,
                                0.00019841269885644534,
                                2.480158726722267e-5,
                                2.7557244767077223e-6,
                                2.7557338218262391e-7,
                                2.5108843383719031e-8,
                                2.0891604833508035e-9};
constexpr Coefficients kNarrowExp{kNarrow32, kNarrow64};

// A number so large that adding it leaves an integer plus `offset` in the lowest bits.
Real rounder(Real like, double offset) { return like.pick(0x1.8p23 + offset, 0x1.8p52 + offset); }

// x = h * 2 ln 2 + rest; the root is 2^h, so that its square reaches every result, subnormal and overflowing ones too.
struct Reduced {
  Real rest, root;
};

Reduced reduce_by_two_ln2(Real x) {
  const Real magic = rounder(x, static_cast<double>(x.bias()));
  const Real shifted = fma(x, kLog2E / 2, magic);
  const Real h = shifted - magic;
  const Real rest =
      fma(h, x.pick(-2.8572136406188345e-06, -1.0995846037416742e-13), fma(h, x.pick(-1.38629150390625, -1.3862943611197807), x));
  return {rest, as_real(shifted.bits() << x.mantissa_bits(), x)};
}

Scaled exp_of(Real rest, Real root) { return {fma(rest, horner(rest, kWideExp), 1.0) * root, root}; }

// x e^x rounds to 0 there.
double least_exponent(Real x) { return x.is_double() ? -760 : -110; }

// e^x rounds to 0 below it. Processors take a hundred cycles and more to multiply to what is below the smallest normal number, and a
// softmax's mask makes such exponents by the thousand.
double last_exponent(Real x) { return x.is_double() ? -746 : -104; }

// e^x - 1 = 2 (half_scale * (e^r - 1) + (half_scale - 1/2)) with x = n ln 2 + r, half_scale = 2^(n-1).
struct Split {
  Real less_one, half_scale;
};

Split split(Real x) {
  const Real magic = rounder(x, static_cast<double>(x.bias()) - 1);
  const Real shifted = fma(x, kLog2E, magic);
  const Real n = shifted - magic;
  const Real r =
      fma(n, x.pick(-1.4286068203094173e-06, 1.7239444525614835e-13), fma(n, x.pick(-0.693145751953125, -0.6931471805601177), x));
  return {fma(r * r, horner(r, kNarrowExp), r), as_real(shifted.bits() << x.mantissa_bits(), x)};
}

}  // namespace

Real half_expm1(Real x) {
  const Split parts = split(x);
  return fma(parts.half_scale, parts.less_one, parts.half_scale - 0.5);
}

Scaled scaled_exp(Real x) {
  const Reduced parts = reduce_by_two_ln2(x);
  return exp_of(parts.rest, parts.root);
}

Scaled scaled_exp(Real x, Real low) {
  const Reduced parts = reduce_by_two_ln2(x);
  return exp_of(parts.rest + low, parts.root);
}

Real negative_in_range(Real x) { return at_least(-absolute(x), least_exponent(x)); }

Real math_exp(Real x) {
  const Scaled e = scaled_exp(at_most(at_least(x, last_exponent(x)), x.is_double() ? 710 : 89));
  return e.mantissa * select(x < last_exponent(x), 0.0, e.root);
}

Real math_expm1(Real x) {
  const Real bounded = at_most(at_least(x, x.is_double() ? -40 : -20), x.is_double() ? 710 : 89);
  return with_sign_of(half_expm1(bounded) * 2.0, x);
}

// q = e / (e + 2) with e = e^2|x| - 1, mended by what the sum lost to rounding: the slope by the divisor is q (q - 1). Past 8 the
// loss is beyond the quotient's last place.
Real math_tanh(Real x) {
  const Real bounded = at_most(absolute(x), x.is_double() ? 20 : 10);
  const Real half = half_expm1(bounded + bounded);
  const Real d = half + 1.0, q = half / d;
  const Real lost = select(bounded < 8, half - (d - 1.0), 0.0);
  return with_sign_of(fma(q * lost, q - 1.0, q), x);
}

// With h = (e^|x| - 1) / 2: h + h / (2 h + 1), which loses nothing near 0. Past 20 the second exponential is below the last place.
Real math_sinh(Real x) {
  const Real a = absolute(x), half = half_expm1(at_most(a, 20));
  const Scaled e = scaled_exp(at_most(a, 711));
  return with_sign_of(select(20 < a, e.mantissa * 0.5 * e.root, half + half / (half + half + 1.0)), x);
}

// (e^|x| + e^-|x|) / 2
Real math_cosh(Real x) {
  const Scaled e = scaled_exp(at_most(absolute(x), 711));
  const Real half = e.mantissa * 0.5 * e.root;
  return half + 0.25 / half;
}

// e^-|x| never overflows, and where x is negative it is the numerator.
Real math_sigmoid(Real x) {
  const Real e = product(scaled_exp(negative_in_range(x)));
  return select(x >= 0, 1.0, e) / (e + 1.0);
}

// The mantissa is multiplied before the root, so that no subnormal number is multiplied; x * 0 makes -infinity times 0 a NaN, as
// in the formula.
Real math_silu(Real x) {
  const Real bounded = negative_in_range(x);
  const Scaled e = scaled_exp(bounded);
  return select(x >= 0, x, fma(x, 0.0, bounded * e.mantissa * e.root)) / (product(e) + 1.0);
}

Real math_gelu_tanh(Real x) {
  constexpr double kTwice = 1.5957691216057308, kCubic = kTwice * 0.044715;
  return x * math_sigmoid(x * fma(x * x, kCubic, kTwice));
}

}  // namespace einc
