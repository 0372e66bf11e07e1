// SPDX-License-Identifier: Apache-2.0
// Expressions over lanes: arithmetic on LLVM values written as formulas. A Real is a float or double or a vector of them, Bits
// its integers of the same width, Mask its conditions; a number in a formula stands for that constant in every lane.
#pragma once
#include <llvm/IR/Constants.h>
#include <llvm/IR/IRBuilder.h>
#include <llvm/IR/Intrinsics.h>

#include <cstdint>
#include <span>

namespace einc {

struct Mask {
  llvm::IRBuilderBase* builder;
  llvm::Value* value;
};

struct Bits {
  llvm::IRBuilderBase* builder;
  llvm::Value* value;

  Bits constant(uint64_t number) const { return {builder, llvm::ConstantInt::get(value->getType(), number)}; }
};

struct Real {
  llvm::IRBuilderBase* builder;
  llvm::Value* value;

  bool is_double() const { return value->getType()->getScalarType()->isDoubleTy(); }
  // Of an IEEE format: stored bits of the mantissa, and the exponent's bias.
  int mantissa_bits() const { return is_double() ? 52 : 23; }
  uint64_t bias() const { return is_double() ? 1023 : 127; }

  Real constant(double number) const { return {builder, llvm::ConstantFP::get(value->getType(), number)}; }
  Real pick(double in_float, double in_double) const { return constant(is_double() ? in_double : in_float); }
  Bits bits() const {
    llvm::Type* type = value->getType()->getWithNewType(builder->getIntNTy(is_double() ? 64 : 32));
    return {builder, builder->CreateBitCast(value, type)};
  }
};

inline Real lift(const Real& like, double number) { return like.constant(number); }
inline Real lift(const Real&, const Real& real) { return real; }
inline Bits lift(const Bits& like, uint64_t number) { return like.constant(number); }
inline Bits lift(const Bits&, const Bits& bits) { return bits; }

template <class A>
concept Number = std::is_arithmetic_v<A>;

inline Real operator+(Real a, Real b) { return {a.builder, a.builder->CreateFAdd(a.value, b.value)}; }
inline Real operator-(Real a, Real b) { return {a.builder, a.builder->CreateFSub(a.value, b.value)}; }
inline Real operator*(Real a, Real b) { return {a.builder, a.builder->CreateFMul(a.value, b.value)}; }
inline Real operator/(Real a, Real b) { return {a.builder, a.builder->CreateFDiv(a.value, b.value)}; }
inline Real operator-(Real a) { return {a.builder, a.builder->CreateFNeg(a.value)}; }
inline Real operator+(Real a, double b) { return a + a.constant(b); }
inline Real operator-(Real a, double b) { return a - a.constant(b); }
inline Real operator*(Real a, double b) { return a * a.constant(b); }
inline Real operator-(double a, Real b) { return b.constant(a) - b; }
inline Real operator/(double a, Real b) { return b.constant(a) / b; }

inline Mask operator<(Real a, Real b) { return {a.builder, a.builder->CreateFCmpOLT(a.value, b.value)}; }
inline Mask operator<(Real a, double b) { return a < a.constant(b); }
inline Mask operator<(double a, Real b) { return b.constant(a) < b; }
inline Mask operator<=(Real a, double b) { return {a.builder, a.builder->CreateFCmpOLE(a.value, a.constant(b).value)}; }
inline Mask operator>=(Real a, double b) { return {a.builder, a.builder->CreateFCmpOGE(a.value, a.constant(b).value)}; }
inline Mask operator==(Real a, Real b) { return {a.builder, a.builder->CreateFCmpOEQ(a.value, b.value)}; }
inline Mask operator==(Real a, double b) { return a == a.constant(b); }
inline Mask is_nan(Real a) { return {a.builder, a.builder->CreateFCmpUNO(a.value, a.value)}; }

inline Mask operator&(Mask a, Mask b) { return {a.builder, a.builder->CreateAnd(a.value, b.value)}; }
inline Mask operator|(Mask a, Mask b) { return {a.builder, a.builder->CreateOr(a.value, b.value)}; }
inline Mask operator!(Mask a) { return {a.builder, a.builder->CreateNot(a.value)}; }

inline Bits operator+(Bits a, Bits b) { return {a.builder, a.builder->CreateAdd(a.value, b.value)}; }
inline Bits operator-(Bits a, Bits b) { return {a.builder, a.builder->CreateSub(a.value, b.value)}; }
inline Bits operator*(Bits a, Bits b) { return {a.builder, a.builder->CreateMul(a.value, b.value)}; }
inline Bits operator&(Bits a, Bits b) { return {a.builder, a.builder->CreateAnd(a.value, b.value)}; }
inline Bits operator|(Bits a, Bits b) { return {a.builder, a.builder->CreateOr(a.value, b.value)}; }
inline Bits operator^(Bits a, Bits b) { return {a.builder, a.builder->CreateXor(a.value, b.value)}; }
inline Bits operator~(Bits a) { return {a.builder, a.builder->CreateNot(a.value)}; }
inline Bits operator+(Bits a, uint64_t b) { return a + a.constant(b); }
inline Bits operator-(Bits a, uint64_t b) { return a - a.constant(b); }
inline Bits operator-(uint64_t a, Bits b) { return b.constant(a) - b; }
inline Bits operator*(Bits a, uint64_t b) { return a * a.constant(b); }
inline Bits operator&(Bits a, uint64_t b) { return a & a.constant(b); }
inline Bits operator^(Bits a, uint64_t b) { return a ^ a.constant(b); }
inline Bits operator<<(Bits a, int places) { return {a.builder, a.builder->CreateShl(a.value, static_cast<uint64_t>(places))}; }
inline Bits operator>>(Bits a, int places) { return {a.builder, a.builder->CreateLShr(a.value, static_cast<uint64_t>(places))}; }
inline Bits arithmetic_shift(Bits a, int places) { return {a.builder, a.builder->CreateAShr(a.value, static_cast<uint64_t>(places))}; }
inline Mask operator==(Bits a, uint64_t b) { return {a.builder, a.builder->CreateICmpEQ(a.value, a.constant(b).value)}; }
inline Mask operator!=(Bits a, uint64_t b) { return {a.builder, a.builder->CreateICmpNE(a.value, a.constant(b).value)}; }

inline Real select(Mask when, Real yes, Real no) { return {yes.builder, yes.builder->CreateSelect(when.value, yes.value, no.value)}; }
inline Real select(Mask when, Real yes, double no) { return select(when, yes, yes.constant(no)); }
inline Real select(Mask when, double yes, Real no) { return select(when, no.constant(yes), no); }
inline Bits select(Mask when, Bits yes, Bits no) { return {yes.builder, yes.builder->CreateSelect(when.value, yes.value, no.value)}; }

// The reals with these bits, of the format of `like`.
inline Real as_real(Bits bits, const Real& like) { return {bits.builder, bits.builder->CreateBitCast(bits.value, like.value->getType())}; }

// The signed integers as reals of the format of `like`.
inline Real to_real(Bits bits, const Real& like) { return {bits.builder, bits.builder->CreateSIToFP(bits.value, like.value->getType())}; }

inline Real unary(llvm::Intrinsic::ID intrinsic, Real a) { return {a.builder, a.builder->CreateUnaryIntrinsic(intrinsic, a.value)}; }
inline Real absolute(Real a) { return unary(llvm::Intrinsic::fabs, a); }
inline Real square_root(Real a) { return unary(llvm::Intrinsic::sqrt, a); }
inline Real with_sign_of(Real a, Real sign) {
  return {a.builder, a.builder->CreateBinaryIntrinsic(llvm::Intrinsic::copysign, a.value, sign.value)};
}

// a * b + c, rounded once.
template <class B, class C>
Real fma(Real a, B b, C c) {
  llvm::Value* arguments[] = {a.value, lift(a, b).value, lift(a, c).value};
  return {a.builder, a.builder->CreateIntrinsic(llvm::Intrinsic::fma, {a.value->getType()}, arguments)};
}

// Bounds that let NaN through: the constant stands first, as in minps and maxps.
inline Real at_most(Real x, double bound) { return select(bound < x, bound, x); }
inline Real at_least(Real x, double bound) { return select(x < bound, bound, x); }

// coefficients[0] + x * (coefficients[1] + x * (...))
inline Real horner(Real x, std::span<const double> coefficients) {
  Real sum = x.constant(coefficients.back());
  for (size_t i = coefficients.size() - 1; i > 0; --i) sum = fma(sum, x, coefficients[i - 1]);
  return sum;
}

// The same with one set of coefficients for each format.
struct Coefficients {
  std::span<const double> in_float, in_double;
};
inline Real horner(Real x, const Coefficients& c) { return horner(x, x.is_double() ? c.in_double : c.in_float); }

inline Real with_width(Real a, llvm::Type* scalar) {
  llvm::Type* type = scalar;
  if (const auto* vector = llvm::dyn_cast<llvm::VectorType>(a.value->getType()))
    type = llvm::VectorType::get(scalar, vector->getElementCount());
  return {a.builder, a.builder->CreateFPCast(a.value, type)};
}
inline Real to_double(Real a) { return with_width(a, a.builder->getDoubleTy()); }
inline Real to_float(Real a) { return with_width(a, a.builder->getFloatTy()); }

}  // namespace einc
