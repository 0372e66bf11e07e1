// erf and gelu. Coefficients: scripts/minimax.
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

// Of the normal distribution: e^(a^2/2) times its tail beyond a, divided by v = 1 / (1 + k a). In float in v, for a up to 15
// (k = 0.35, 2^-24.8); in double in v - 1/2, for a up to 39 (k = 0.25, 2^-52.6).
constexpr double kTail32[] = {0.139621258, 0.13986434,   0.119815513, 0.105574556,  -0.0232628249,
                              0.159390852, -0.255899578, 0.144059479, -0.0291636102};
constexpr double kTail64[] = {0.18882128260393788,    0.30394832098594476,   0.38713740074220637,     0.37304371591979846,
                              0.24158629956542485,    0.060321511679907201,  -0.055675077996889748,   -0.052186187856192084,
                              0.0085340397043184163,  0.029580071461177623,  -0.00048856515285799476, -0.017992674341373447,
                              0.00073392556887746376, 0.012109001161685732,  -0.0025717785986834386,  -0.008260917920110274,
                              0.004349313097443643,   0.0046337605607827794, -0.0049410590820031406,  -0.00083273216103207925,
                              0.0030723235431905477,  -0.0012336560402443227};

// v times the polynomial in v. What v lacks for its roundings would show in the last places, so it is made good: in double
// in the polynomial's argument, in float by the slope, which is near kSlope where the tail is largest.
Real bent_tail(Real a) {
  constexpr double kSlope = 2.2;
  const Real k = a.pick(0.35, 0.25), d = fma(a, k, 1.0), v = 1.0 / d;
  const Real lack = fma(-v, fma(a, k, 1.0 - d), fma(-v, d, 1.0));
  if (!a.is_double()) {
    const Real bent = v * horner(v, kTail32);
    return fma(bent * kSlope, lack, bent);
  }
  const Real polynomial = horner(fma(v, lack, v - 0.5), kTail64);
  return fma(v, polynomial, v * lack * polynomial);
}

// The share of the normal distribution beyond a >= 0, where half_square + low is a^2 / 2.
Scaled normal_tail(Real a, Real half_square, Real low) {
  const Scaled e = scaled_exp(-half_square, -low);
  return {bent_tail(a) * e.mantissa, e.root};
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
  const Real far = 1.0 - product(normal_tail(bounded * 1.4142135623730951, square, fma(bounded, bounded, -square))) * 2.0;
  return select(a < 1, near, with_sign_of(far, x));
}

// x times the normal distribution's share below x, which is 0 past the bound. The tail's mantissa is multiplied before its root,
// so that no subnormal number is multiplied; x * 0 makes -infinity times 0 a NaN, as in the formula.
Real math_gelu(Real x) {
  const Real a = at_most(absolute(x), x.is_double() ? 39 : 15), square = a * a;
  const Scaled tail = normal_tail(a, square * 0.5, fma(a, a, -square) * 0.5);
  return select(x < 0, fma(x, 0.0, -a * tail.mantissa * tail.root), x * (1.0 - product(tail)));
}

}  // namespace einc
