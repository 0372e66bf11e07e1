// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/math.h"

#include "compiler/codegen/llvm/math_parts.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

// Functions seldom met have one formula, of doubles: what is left of a float's last place is its rounding.
Real in_double(Real x, Real (*function)(Real)) { return x.is_double() ? function(x) : to_float(function(to_double(x))); }

Real apply(MathFn fn, Real x) {
  switch (fn) {
    case MathFn::exp:
      return math_exp(x);
    case MathFn::expm1:
      return math_expm1(x);
    case MathFn::log:
      return math_log(x);
    case MathFn::log1p:
      return math_log1p(x);
    case MathFn::tanh:
      return math_tanh(x);
    case MathFn::sigmoid:
      return math_sigmoid(x);
    case MathFn::erf:
      return math_erf(x);
    case MathFn::sin:
      return math_sin(x);
    case MathFn::cos:
      return math_cos(x);
    case MathFn::rsqrt:
      return 1.0 / square_root(x);
    case MathFn::gelu:
      return math_gelu(x);
    case MathFn::gelu_tanh:
      return math_gelu_tanh(x);
    case MathFn::silu:
      return math_silu(x);
    case MathFn::softplus:
      return math_softplus(x);
    case MathFn::tan:
      return math_tan(x);
    case MathFn::asin:
      return in_double(x, math_asin);
    case MathFn::acos:
      return in_double(x, math_acos);
    case MathFn::atan:
      return in_double(x, math_atan);
    case MathFn::sinh:
      return in_double(x, math_sinh);
    case MathFn::cosh:
      return in_double(x, math_cosh);
    case MathFn::erfc:
      return in_double(x, math_erfc);
    case MathFn::erfinv:
      return in_double(x, math_erfinv);
    case MathFn::lgamma:
      return in_double(x, math_lgamma);
  }
  EINC_CHECK(false, "no such function");
  return x;
}

}  // namespace

llvm::Value* emit_math(llvm::IRBuilderBase& builder, MathFn fn, llvm::Value* x) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.clearFastMathFlags();
  return apply(fn, Real{&builder, x}).value;
}

llvm::Value* emit_pow(llvm::IRBuilderBase& builder, llvm::Value* base, llvm::Value* exponent) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.clearFastMathFlags();
  return math_pow(Real{&builder, base}, Real{&builder, exponent}).value;
}

llvm::Value* emit_atan2(llvm::IRBuilderBase& builder, llvm::Value* y, llvm::Value* x) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.clearFastMathFlags();
  const Real up{&builder, y}, along{&builder, x};
  if (up.is_double()) return math_atan2(up, along).value;
  return to_float(math_atan2(to_double(up), to_double(along))).value;
}

llvm::Value* emit_gelu_slope(llvm::IRBuilderBase& builder, llvm::Value* x) {
  const llvm::IRBuilderBase::FastMathFlagGuard guard(builder);
  builder.clearFastMathFlags();
  return math_gelu_slope(Real{&builder, x}).value;
}

}  // namespace einc
