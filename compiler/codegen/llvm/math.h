// SPDX-License-Identifier: Apache-2.0
// Elementary functions as straight-line code on floats, doubles and vectors of them: no calls, no branches, no tables in
// memory but those of sin and cos in double. Every lane gets the same operations, fused ones by llvm.fma, so that a number's
// result does not depend on the vector's length, the processor, or flags of the builder.
//
// The columns of the table bound the error for float and double, in units of the last place of the exact result, over all
// finite arguments and subnormal results; measured maxima are about four fifths of them (tests/unit/codegen prints them). Signs of
// zero, infinities and NaN follow C's Annex F. gelu_tanh, and gelu in float, round the argument of their exponential, which shows where
// the result is much smaller than x: the unit is at least that of `floor` times x. sin and cos are reduced exactly for arguments of any
// size. pow keeps 1 unit in float, 2 in double; atan2 keeps 1 and 2. lgamma has a zero between each two poles below -2, near which an error
// of 2^-50 of the terms it is the difference of remains.
#pragma once
#include <cstdint>

namespace llvm {
class IRBuilderBase;
class Value;
}  // namespace llvm

namespace einc {

//  name, bound in float, its floor, bound in double, its floor
#define EINC_MATH_FNS(X)           \
  X(exp, 2, 0, 2, 0)               \
  X(expm1, 2, 0, 2, 0)             \
  X(log, 1, 0, 1, 0)               \
  X(log1p, 1.5, 0, 1.5, 0)         \
  X(tanh, 2.5, 0, 2.5, 0)          \
  X(sigmoid, 3.5, 0, 3.5, 0)       \
  X(erf, 1.5, 0, 1.5, 0)           \
  X(sin, 2, 0, 3, 0)               \
  X(cos, 2, 0, 3, 0)               \
  X(rsqrt, 1.5, 0, 1.5, 0)         \
  X(gelu, 3.5, 0.125, 6, 0)        \
  X(gelu_tanh, 4, 0.125, 4, 0.125) \
  X(silu, 4, 0, 4, 0)              \
  X(softplus, 2.5, 0, 3, 0)        \
  X(tan, 4, 0, 5, 0)               \
  X(asin, 1, 0, 2.5, 0)            \
  X(acos, 1, 0, 2, 0)              \
  X(atan, 1, 0, 2, 0)              \
  X(sinh, 1, 0, 3, 0)              \
  X(cosh, 1, 0, 2, 0)              \
  X(erfc, 1, 0, 5.5, 0)            \
  X(erfinv, 1, 0, 4, 0)            \
  X(lgamma, 1, 0, 5.5, 0)

enum class MathFn : uint8_t {
#define EINC_ENUMERATE(name, in_float, floor_in_float, in_double, floor_in_double) name,
  EINC_MATH_FNS(EINC_ENUMERATE)
#undef EINC_ENUMERATE
};

llvm::Value* emit_math(llvm::IRBuilderBase& builder, MathFn fn, llvm::Value* x);

llvm::Value* emit_pow(llvm::IRBuilderBase& builder, llvm::Value* base, llvm::Value* exponent);
llvm::Value* emit_atan2(llvm::IRBuilderBase& builder, llvm::Value* y, llvm::Value* x);

// Of gelu at floats, within 1.5 units of the last place of 1.
llvm::Value* emit_gelu_slope(llvm::IRBuilderBase& builder, llvm::Value* x);

}  // namespace einc
