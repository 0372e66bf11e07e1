// The functions of math.h as formulas, and the pieces that they share.
#pragma once
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
