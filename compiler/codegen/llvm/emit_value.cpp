// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/emit_value.h"

#include <llvm/IR/Intrinsics.h>

#include "compiler/codegen/llvm/math.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

using llvm::Value;
using llvm::Intrinsic::ID;
namespace intrinsic = llvm::Intrinsic;

Value* emit_compare(IrBuilder& b, MapFn fn, Value* x, Value* y, DType dtype) {
  using P = llvm::CmpInst::Predicate;
  const bool real = is_floating(dtype), is_unsigned = dtype == DType::boolean;
  switch (fn) {
    case MapFn::equal:
      return b.CreateCmp(real ? P::FCMP_OEQ : P::ICMP_EQ, x, y);
    case MapFn::not_equal:
      return b.CreateCmp(real ? P::FCMP_UNE : P::ICMP_NE, x, y);
    case MapFn::less:
      return b.CreateCmp(real ? P::FCMP_OLT : is_unsigned ? P::ICMP_ULT : P::ICMP_SLT, x, y);
    case MapFn::less_equal:
      return b.CreateCmp(real ? P::FCMP_OLE : is_unsigned ? P::ICMP_ULE : P::ICMP_SLE, x, y);
    case MapFn::greater:
      return b.CreateCmp(real ? P::FCMP_OGT : is_unsigned ? P::ICMP_UGT : P::ICMP_SGT, x, y);
    case MapFn::greater_equal:
      return b.CreateCmp(real ? P::FCMP_OGE : is_unsigned ? P::ICMP_UGE : P::ICMP_SGE, x, y);
    case MapFn::add:
    case MapFn::sub:
    case MapFn::mul:
    case MapFn::div:
    case MapFn::pow:
    case MapFn::minimum:
    case MapFn::maximum:
    case MapFn::logical_and:
    case MapFn::logical_or:
    case MapFn::logical_not:
    case MapFn::where:
    case MapFn::neg:
    case MapFn::abs:
    case MapFn::sign:
    case MapFn::relu:
    case MapFn::exp:
    case MapFn::expm1:
    case MapFn::log:
    case MapFn::log1p:
    case MapFn::sqrt:
    case MapFn::rsqrt:
    case MapFn::sin:
    case MapFn::cos:
    case MapFn::tanh:
    case MapFn::sigmoid:
    case MapFn::erf:
    case MapFn::gelu:
    case MapFn::gelu_tanh:
    case MapFn::silu:
    case MapFn::softplus:
    case MapFn::floor_div:
    case MapFn::remainder:
    case MapFn::clamp:
    case MapFn::floor:
    case MapFn::ceil:
    case MapFn::round:
    case MapFn::trunc:
    case MapFn::tan:
    case MapFn::asin:
    case MapFn::acos:
    case MapFn::atan:
    case MapFn::atan2:
    case MapFn::sinh:
    case MapFn::cosh:
    case MapFn::erfc:
    case MapFn::erfinv:
    case MapFn::lgamma:
      break;
  }
  EINC_CHECK(false, "{} compares nothing", to_string(fn));
}

// Squaring while bits of the exponent remain; 63 of them at most.
Value* integer_power(IrBuilder& b, Value* base, Value* exponent) {
  llvm::Type* type = base->getType();
  Value* result = integer(type, 1);
  const unsigned bits = type->getScalarSizeInBits();
  for (unsigned k = 0; k + 1 < bits; ++k) {
    Value* odd = b.CreateICmpNE(b.CreateAnd(b.CreateLShr(exponent, integer(type, k)), integer(type, 1)), integer(type, 0));
    result = b.CreateSelect(odd, b.CreateMul(result, base), result);
    base = b.CreateMul(base, base);
  }
  return result;
}

struct FloorDivision {
  Value *quotient, *remainder;
};

// Toward -infinity. The divisors 0, of lanes that do not count, and -1, whose quotient may overflow, would trap.
FloorDivision floor_division(IrBuilder& b, Value* x, Value* by) {
  llvm::Type* type = x->getType();
  Value *zero = integer(type, 0), *minus_one = b.CreateICmpEQ(by, integer(type, -1));
  Value* divisor = b.CreateSelect(b.CreateOr(b.CreateICmpEQ(by, zero), minus_one), integer(type, 1), by);
  Value *quotient = b.CreateSDiv(x, divisor), *rest = b.CreateSub(x, b.CreateMul(quotient, divisor));
  Value* beyond = b.CreateAnd(b.CreateICmpNE(rest, zero), b.CreateICmpSLT(b.CreateXor(rest, divisor), zero));
  quotient = b.CreateSub(quotient, b.CreateZExt(beyond, type));
  rest = b.CreateAdd(rest, b.CreateSelect(beyond, divisor, zero));
  return {b.CreateSelect(minus_one, b.CreateNeg(x), quotient), rest};
}

Value* emit_integer(IrBuilder& b, MapFn fn, std::span<Value* const> x) {
  llvm::Type* type = x[0]->getType();
  Value* zero = integer(type, 0);
  const bool boolean = type->getScalarSizeInBits() == 1;
  switch (fn) {
    case MapFn::add:
      return b.CreateAdd(x[0], x[1]);
    case MapFn::sub:
      return b.CreateSub(x[0], x[1]);
    case MapFn::mul:
      return b.CreateMul(x[0], x[1]);
    case MapFn::pow:
      return integer_power(b, x[0], x[1]);
    case MapFn::minimum:
      return boolean ? b.CreateAnd(x[0], x[1]) : b.CreateBinaryIntrinsic(intrinsic::smin, x[0], x[1]);
    case MapFn::maximum:
      return boolean ? b.CreateOr(x[0], x[1]) : b.CreateBinaryIntrinsic(intrinsic::smax, x[0], x[1]);
    case MapFn::floor_div:
      return floor_division(b, x[0], x[1]).quotient;
    case MapFn::remainder:
      return floor_division(b, x[0], x[1]).remainder;
    case MapFn::clamp:
      return b.CreateBinaryIntrinsic(intrinsic::smin, b.CreateBinaryIntrinsic(intrinsic::smax, x[0], x[1]), x[2]);
    case MapFn::floor:
    case MapFn::ceil:
    case MapFn::round:
    case MapFn::trunc:
      return x[0];
    case MapFn::neg:
      return b.CreateNeg(x[0]);
    case MapFn::abs:
      return b.CreateBinaryIntrinsic(intrinsic::abs, x[0], b.getFalse());
    case MapFn::sign:
      return b.CreateSub(b.CreateZExt(b.CreateICmpSGT(x[0], zero), type), b.CreateZExt(b.CreateICmpSLT(x[0], zero), type));
    case MapFn::relu:
      return b.CreateBinaryIntrinsic(intrinsic::smax, x[0], zero);
    case MapFn::logical_and:
      return b.CreateAnd(x[0], x[1]);
    case MapFn::logical_or:
      return b.CreateOr(x[0], x[1]);
    case MapFn::logical_not:
      return b.CreateNot(x[0]);
    case MapFn::div:
    case MapFn::equal:
    case MapFn::not_equal:
    case MapFn::less:
    case MapFn::less_equal:
    case MapFn::greater:
    case MapFn::greater_equal:
    case MapFn::where:
    case MapFn::exp:
    case MapFn::expm1:
    case MapFn::log:
    case MapFn::log1p:
    case MapFn::sqrt:
    case MapFn::rsqrt:
    case MapFn::sin:
    case MapFn::cos:
    case MapFn::tanh:
    case MapFn::sigmoid:
    case MapFn::erf:
    case MapFn::gelu:
    case MapFn::gelu_tanh:
    case MapFn::silu:
    case MapFn::softplus:
    case MapFn::tan:
    case MapFn::asin:
    case MapFn::acos:
    case MapFn::atan:
    case MapFn::atan2:
    case MapFn::sinh:
    case MapFn::cosh:
    case MapFn::erfc:
    case MapFn::erfinv:
    case MapFn::lgamma:
      break;
  }
  EINC_CHECK(false, "{} of integers", to_string(fn));
}

Value* emit_real(IrBuilder& b, MapFn fn, std::span<Value* const> x) {
  llvm::Type* type = x[0]->getType();
  Value* zero = number(type, 0);
  switch (fn) {
    case MapFn::add:
      return b.CreateFAdd(x[0], x[1]);
    case MapFn::sub:
      return b.CreateFSub(x[0], x[1]);
    case MapFn::mul:
      return b.CreateFMul(x[0], x[1]);
    case MapFn::div:
      return b.CreateFDiv(x[0], x[1]);
    case MapFn::minimum:
      return b.CreateBinaryIntrinsic(intrinsic::minimum, x[0], x[1]);
    case MapFn::maximum:
      return b.CreateBinaryIntrinsic(intrinsic::maximum, x[0], x[1]);
    case MapFn::neg:
      return b.CreateFNeg(x[0]);
    case MapFn::abs:
      return b.CreateUnaryIntrinsic(intrinsic::fabs, x[0]);
    case MapFn::sign: {
      Value* one =
          b.CreateSelect(b.CreateFCmpOGT(x[0], zero), number(type, 1), b.CreateSelect(b.CreateFCmpOLT(x[0], zero), number(type, -1), zero));
      return b.CreateSelect(b.CreateFCmpUNO(x[0], x[0]), x[0], one);
    }
    case MapFn::relu:
      return b.CreateSelect(b.CreateFCmpOLT(x[0], zero), zero, x[0]);
    case MapFn::sqrt:
      return b.CreateUnaryIntrinsic(intrinsic::sqrt, x[0]);
    case MapFn::pow:
      return emit_pow(b, x[0], x[1]);
    case MapFn::exp:
      return emit_math(b, MathFn::exp, x[0]);
    case MapFn::expm1:
      return emit_math(b, MathFn::expm1, x[0]);
    case MapFn::log:
      return emit_math(b, MathFn::log, x[0]);
    case MapFn::log1p:
      return emit_math(b, MathFn::log1p, x[0]);
    case MapFn::rsqrt:
      return emit_math(b, MathFn::rsqrt, x[0]);
    case MapFn::sin:
      return emit_math(b, MathFn::sin, x[0]);
    case MapFn::cos:
      return emit_math(b, MathFn::cos, x[0]);
    case MapFn::tanh:
      return emit_math(b, MathFn::tanh, x[0]);
    case MapFn::sigmoid:
      return emit_math(b, MathFn::sigmoid, x[0]);
    case MapFn::erf:
      return emit_math(b, MathFn::erf, x[0]);
    case MapFn::gelu:
      return emit_math(b, MathFn::gelu, x[0]);
    case MapFn::gelu_tanh:
      return emit_math(b, MathFn::gelu_tanh, x[0]);
    case MapFn::silu:
      return emit_math(b, MathFn::silu, x[0]);
    case MapFn::softplus:
      return emit_math(b, MathFn::softplus, x[0]);
    case MapFn::clamp:
      return b.CreateBinaryIntrinsic(intrinsic::minimum, b.CreateBinaryIntrinsic(intrinsic::maximum, x[0], x[1]), x[2]);
    case MapFn::floor:
      return b.CreateUnaryIntrinsic(intrinsic::floor, x[0]);
    case MapFn::ceil:
      return b.CreateUnaryIntrinsic(intrinsic::ceil, x[0]);
    case MapFn::round:
      return b.CreateUnaryIntrinsic(intrinsic::roundeven, x[0]);
    case MapFn::trunc:
      return b.CreateUnaryIntrinsic(intrinsic::trunc, x[0]);
    case MapFn::atan2:
      return emit_atan2(b, x[0], x[1]);
    case MapFn::tan:
      return emit_math(b, MathFn::tan, x[0]);
    case MapFn::asin:
      return emit_math(b, MathFn::asin, x[0]);
    case MapFn::acos:
      return emit_math(b, MathFn::acos, x[0]);
    case MapFn::atan:
      return emit_math(b, MathFn::atan, x[0]);
    case MapFn::sinh:
      return emit_math(b, MathFn::sinh, x[0]);
    case MapFn::cosh:
      return emit_math(b, MathFn::cosh, x[0]);
    case MapFn::erfc:
      return emit_math(b, MathFn::erfc, x[0]);
    case MapFn::erfinv:
      return emit_math(b, MathFn::erfinv, x[0]);
    case MapFn::lgamma:
      return emit_math(b, MathFn::lgamma, x[0]);
    case MapFn::equal:
    case MapFn::not_equal:
    case MapFn::less:
    case MapFn::less_equal:
    case MapFn::greater:
    case MapFn::greater_equal:
    case MapFn::logical_and:
    case MapFn::logical_or:
    case MapFn::logical_not:
    case MapFn::where:
    case MapFn::floor_div:
    case MapFn::remainder:
      break;
  }
  EINC_CHECK(false, "{} of numbers", to_string(fn));
}

}  // namespace

Value* emit_map(IrBuilder& b, MapFn fn, std::span<Value* const> x, DType operand, DType result) {
  if (fn == MapFn::where) return b.CreateSelect(x[0], x[1], x[2]);
  if (is_comparison(fn)) return emit_compare(b, fn, x[0], x[1], operand);
  Value* value = is_floating(operand) ? emit_real(b, fn, x) : emit_integer(b, fn, x);
  return round_to(b, value, result);
}

}  // namespace einc
