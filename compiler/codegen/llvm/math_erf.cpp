// SPDX-License-Identifier: Apache-2.0
// erf, erfc, its inverse and gelu. Coefficients: scripts/minimax.
#include "compiler/codegen/llvm/math_parts.h"

namespace einc {
namespace {

// erf(x) / x - 1 in x^2: for |x| < 0.93 in float (2^-25.8), |x| < 1 in double (2^-56).
constexpr double kSmall32[] = {0.128379151, -0.376124889, 0.112817302, -0.0267629158, 0.00498725288, -0.000595897727};
constexpr double kSmall64[] = {0.12837916709551256,   -0.37612638903183343,    0.1128379167093695,     -0.026866170641959057,
                               0.0052239775967326098, -0.00085483254845624941, 0.00012055280468691306, -1.4924464662937355e-5,
                               1.6444130830464795e-6, -1.618376231414891e-7,   1.3615289143257899e-8,  -7.6042407886305051e-10};
constexpr Coefficients kSmall{kSmall32, kSmall64};

// log(1 - erf(x)) / x for x in [0.92, 4]; past 4, erf rounds to 1.
constexpr double kLogTail32[] = {-1.12851071, -0.635731101, -0.105244428, 0.0228784569, -0.00321127032, 0.00021352763};

// Of the normal distribution: the logarithm of its tail beyond a in [0, 5.6], within 2^-25.5 where the tail is more than 1/8, by as
// much less as it is smaller than that, but 2^-11.5 at the most.
constexpr double kLogNormalTail32[] = {-0.693147182,   -0.797885299,    -0.318300486,  -0.0363753065,  0.00486163562,
                                       -4.84283337e-5, -0.000162700453, 4.05707106e-5, -4.64582627e-6, 2.16019274e-7};
constexpr double kFarthest32 = 5.6;  // half a float's last place of 1 lies beyond it

// e^(a^2/2) times what the slope of gelu at a lacks to 1 (the tail beyond a less a times the density there), for a in [0, 6.5]: 2^-25
// of 1 in the slope.
constexpr double kSlopeLack32[] = {0.49999997,    -0.797881782,   0.2499571,      -0.132722408,   0.0616981238,  -0.0251225792,
                                   0.00867431797, -0.00239466387, 0.000490768696, -6.82410027e-5, 5.63292451e-6, -2.05186055e-7};
constexpr double kNoLack32 = 12;  // the density is 0 beside 1 there, whatever the polynomial

// e^(a^2/2) times the tail beyond a for a up to 39, divided by v = 1 / (1 + a / 4), in v - 1/2: 2^-52.6.
constexpr double kTail64[] = {0.18882128260393788,    0.30394832098594476,   0.38713740074220637,     0.37304371591979846,
                              0.24158629956542485,    0.060321511679907201,  -0.055675077996889748,   -0.052186187856192084,
                              0.0085340397043184163,  0.029580071461177623,  -0.00048856515285799476, -0.017992674341373447,
                              0.00073392556887746376, 0.012109001161685732,  -0.0025717785986834386,  -0.008260917920110274,
                              0.004349313097443643,   0.0046337605607827794, -0.0049410590820031406,  -0.00083273216103207925,
                              0.0030723235431905477,  -0.0012336560402443227};

// erfinv(x) / |x| in w = -log(1 - x^2) below 6, and erfinv in its root up to 6.2: both within 2^-21.
constexpr double kInverseErf[] = {0.8862264940849518,     0.23202589875397756,     0.011492327414188352,
                                  -0.0022331749000000052, -0.00021846596374755059, 9.0596631031365356e-5,
                                  -9.7178185700095289e-6, 4.0517987267285962e-7,   -2.793764937907828e-9};
constexpr double kFarInverseErf[] = {0.13173601989643,        0.64542489626522481,   0.1644001107636672,
                                     -0.036486873398505801,   0.0028973803414516839, 0.00043436007665337663,
                                     -0.00012824004178051173, 1.2034486775445132e-5, -4.1671343214207044e-7};

constexpr double kSqrt2 = 1.4142135623730951;

// v times the polynomial. What v lacks for its roundings would show in the last places, so it is made good in the polynomial's
// argument.
Real bent_tail(Real a) {
  constexpr double kBend = 0.25;
  const Real d = fma(a, kBend, 1.0), v = 1.0 / d;
  const Real lack = fma(-v, fma(a, kBend, 1.0 - d), fma(-v, d, 1.0));
  const Real polynomial = horner(fma(v, lack, v - 0.5), kTail64);
  return fma(v, polynomial, v * lack * polynomial);
}

// The share of the normal distribution beyond a >= 0, where half_square + low is a^2 / 2.
Scaled normal_tail(Real a, Real half_square, Real low) {
  const Scaled e = scaled_exp(-half_square, -low);
  return {bent_tail(a) * e.mantissa, e.root};
}

// x times the normal distribution's share below x, which is 0 past the bound. The tail's mantissa is multiplied before its root,
// so that no subnormal number is multiplied; x * 0 makes -infinity times 0 a NaN, as in the formula.
Real gelu_of_double(Real x) {
  const Real a = at_most(absolute(x), 39), square = a * a;
  const Scaled tail = normal_tail(a, square * 0.5, fma(a, a, -square) * 0.5);
  return select(x < 0, fma(x, 0.0, -a * tail.mantissa * tail.root), x * (1.0 - product(tail)));
}

// The positive part of x less |x| times the tail beyond it.
Real gelu_of_float(Real x) {
  const Real a = at_most(absolute(x), kFarthest32);
  const Scaled tail = scaled_exp(horner(a, kLogNormalTail32));
  const Real near = fma(-(a * tail.mantissa), tail.root, at_least(x, 0));
  return select(x < -kFarthest32, x * 0.0, near);
}

}  // namespace

Real math_erf(Real x) {
  const Real a = absolute(x), near = fma(x, horner(x * x, kSmall), x);
  if (!x.is_double()) {
    const Real bounded = at_most(a, 4);
    const Real far = 1.0 - product(scaled_exp(bounded * horner(bounded, kLogTail32)));
    return select(a < 0.92, near, with_sign_of(far, x));
  }
  const Real bounded = at_most(a, 6), square = bounded * bounded;
  const Real far = 1.0 - product(normal_tail(bounded * kSqrt2, square, fma(bounded, bounded, -square))) * 2.0;
  return select(a < 1, near, with_sign_of(far, x));
}

// Twice the normal distribution's tail beyond x sqrt(2), below 0 what it lacks to 2. Past 27.5 it is below the smallest number.
Real math_erfc(Real x) {
  const Real a = at_most(absolute(x), 27.5), square = a * a;
  const Scaled tail = normal_tail(a * kSqrt2, square, fma(a, a, -square));
  const Real beyond = tail.mantissa * 2.0 * tail.root;
  return select(x < 0, 2.0 - beyond, beyond);
}

// A start within 2^-21 in w = -log(1 - x^2), and a step of Halley on erf - |x|, or on what both lack to 1 where that is less.
Real math_erfinv(Real x) {
  const Real a = absolute(x), lack = 1.0 - a;
  const Real w = -math_log(lack * (a + 1.0)), root = square_root(w);
  const Real start = select(w < 6, a * horner(w, kInverseErf), horner(root, kFarInverseErf));
  const Real inside = at_most(start, 6.5);
  const Real off = select(a < 0.5, math_erf(inside) - a, lack - math_erfc(inside));
  const Real step = off * product(scaled_exp(inside * inside)) * 0.88622692545275801;  // sqrt(pi) / 2
  const Real found = inside - step / fma(inside, step, 1.0);
  const Real known = select(a == 1, kInfinity, select(a <= 1, found, x.constant(kNaN)));
  return with_sign_of(known, x);
}

Real math_gelu_slope(Real x) {
  const Real a = at_most(absolute(x), kNoLack32);
  const Scaled density = scaled_exp(a * -0.5 * a);
  const Real lack = fma(x, 0.0, horner(a, kSlopeLack32) * density.mantissa * density.root);
  return select(x < 0, lack, 1.0 - lack);
}

Real math_gelu(Real x) { return x.is_double() ? gelu_of_double(x) : gelu_of_float(x); }

}  // namespace einc
