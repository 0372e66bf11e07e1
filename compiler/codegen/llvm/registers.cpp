// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/llvm/registers.h"

#include <llvm/IR/Intrinsics.h>
#include <llvm/IR/IntrinsicsX86.h>

#include "runtime/base/check.h"

namespace einc {
namespace {

using llvm::Value;

Value* bit_cast(IrBuilder& b, Value* x, llvm::Type* scalar) { return b.CreateBitCast(x, with_lanes_of(scalar, x->getType())); }

// The upper half of an f32, rounded to nearest even; NaN stays a quiet NaN.
Value* bf16_bits(IrBuilder& b, Value* x) {
  Value* bits = bit_cast(b, x, b.getInt32Ty());
  llvm::Type* type = bits->getType();
  Value* odd = b.CreateAnd(b.CreateLShr(bits, integer(type, 16)), integer(type, 1));
  Value* rounded = b.CreateLShr(b.CreateAdd(b.CreateAdd(bits, integer(type, 0x7FFF)), odd), integer(type, 16));
  Value* quiet = b.CreateOr(b.CreateLShr(bits, integer(type, 16)), integer(type, 0x40));
  return b.CreateSelect(b.CreateFCmpUNO(x, x), quiet, rounded);
}

Value* bf16_value(IrBuilder& b, Value* bits) { return bit_cast(b, b.CreateShl(bits, integer(bits->getType(), 16)), b.getFloatTy()); }

struct Small {
  int mantissa;
  int bias;
  bool has_infinity;
};
constexpr Small kE4M3{3, 7, false}, kE5M2{2, 15, true};
const Small& small_format(DType dtype) { return dtype == DType::f8e4m3 ? kE4M3 : kE5M2; }

// Eight bits to float: exponent and fraction moved to f32's places are the value times 2^(bias - 127), subnormals too.
Value* f8_value(IrBuilder& b, Value* bits, DType dtype) {
  const Small& f = small_format(dtype);
  llvm::Type* type = bits->getType();
  Value* magnitude = b.CreateAnd(bits, integer(type, 0x7F));
  Value* sign = b.CreateShl(b.CreateAnd(bits, integer(type, 0x80)), integer(type, 24));
  Value* placed = bit_cast(b, b.CreateShl(magnitude, integer(type, 23 - f.mantissa)), b.getFloatTy());
  Value* scaled = b.CreateFMul(placed, number(placed->getType(), std::ldexp(1.0, 127 - f.bias)));
  Value* special_from = integer(type, f.has_infinity ? 0x7C : 0x7F);
  Value* nan_or_infinity =
      bit_cast(b, b.CreateOr(b.CreateShl(magnitude, integer(type, 23 - f.mantissa)), integer(type, 0x7F800000)), b.getFloatTy());
  Value* value = b.CreateSelect(b.CreateICmpUGE(magnitude, special_from), nan_or_infinity, scaled);
  return bit_cast(b, b.CreateOr(bit_cast(b, value, b.getInt32Ty()), sign), b.getFloatTy());
}

// Float to eight bits. Adding 2^(e + 23 - mantissa) rounds at the format's last place; e is the exponent, at least the
// smallest normal one. Beyond the range e5m2 has infinity, e4m3 NaN.
Value* f8_bits(IrBuilder& b, Value* x, DType dtype) {
  const Small& f = small_format(dtype);
  llvm::Type* floats = x->getType();
  Value* bits = bit_cast(b, x, b.getInt32Ty());
  llvm::Type* type = bits->getType();
  Value* sign = b.CreateAnd(b.CreateLShr(bits, integer(type, 24)), integer(type, 0x80));
  Value* magnitude = b.CreateAnd(bits, integer(type, 0x7FFFFFFF));
  const int64_t smallest = 127 - f.bias + 1;
  Value* exponent = b.CreateBinaryIntrinsic(llvm::Intrinsic::umax, b.CreateLShr(magnitude, integer(type, 23)), integer(type, smallest));
  Value* shift = bit_cast(b, b.CreateShl(b.CreateAdd(exponent, integer(type, 23 - f.mantissa)), integer(type, 23)), b.getFloatTy());
  Value* absolute = bit_cast(b, magnitude, b.getFloatTy());
  Value* rounded = b.CreateFSub(b.CreateFAdd(absolute, shift), shift);
  Value* scaled = bit_cast(b, b.CreateFMul(rounded, number(floats, std::ldexp(1.0, f.bias - 127))), b.getInt32Ty());
  Value* code = b.CreateLShr(scaled, integer(type, 23 - f.mantissa));
  // Far beyond the range the sum above is not exact; 464 is the tie between 448 and what would follow it.
  Value* beyond = f.has_infinity ? b.CreateFCmpOGE(absolute, number(floats, 61440.0)) : b.CreateFCmpOGT(absolute, number(floats, 464.0));
  code = b.CreateSelect(beyond, integer(type, f.has_infinity ? 0x7C : 0x7F), code);
  code = b.CreateSelect(b.CreateFCmpUNO(x, x), integer(type, 0x7F), code);
  return b.CreateOr(code, sign);
}

// f64 to f32 by rounding to odd: an inexact result is the neighbour whose last bit is 1, so that rounding it again to a format
// of at most 22 bits of fraction gives what rounding x at once gives.
Value* to_float_by_odd(IrBuilder& b, Value* x, llvm::Type* floats) {
  Value* nearest = b.CreateFPTrunc(x, floats);
  Value* back = b.CreateFPExt(nearest, x->getType());
  Value* bits = bit_cast(b, nearest, b.getInt32Ty());
  llvm::Type* type = bits->getType();
  Value* even = b.CreateICmpEQ(b.CreateAnd(bits, integer(type, 1)), integer(type, 0));
  Value* inexact = b.CreateFCmpONE(back, x);
  Value* too_small = b.CreateFCmpOLT(b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, back), b.CreateUnaryIntrinsic(llvm::Intrinsic::fabs, x));
  Value* odd = b.CreateAdd(bits, b.CreateSelect(too_small, integer(type, 1), integer(type, -1)));
  return bit_cast(b, b.CreateSelect(b.CreateAnd(even, inexact), odd, bits), b.getFloatTy());
}

bool is_small_float(DType dtype) { return is_floating(dtype) && dtype != DType::f64 && dtype != DType::f32 && dtype != DType::real; }

}  // namespace

llvm::Type* register_type(llvm::LLVMContext& context, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return llvm::Type::getDoubleTy(context);
    case DType::real:
    case DType::f32:
    case DType::bf16:
    case DType::f16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return llvm::Type::getFloatTy(context);
    case DType::i64:
      return llvm::Type::getInt64Ty(context);
    case DType::i32:
    case DType::u16:
    case DType::u8:
      return llvm::Type::getInt32Ty(context);
    case DType::boolean:
      return llvm::Type::getInt1Ty(context);
  }
  return nullptr;
}

llvm::Type* storage_type(llvm::LLVMContext& context, DType dtype) {
  switch (dtype) {
    case DType::f64:
      return llvm::Type::getDoubleTy(context);
    case DType::real:
    case DType::f32:
      return llvm::Type::getFloatTy(context);
    case DType::f16:
      return llvm::Type::getHalfTy(context);
    case DType::bf16:
    case DType::u16:
      return llvm::Type::getInt16Ty(context);
    case DType::f8e4m3:
    case DType::f8e5m2:
    case DType::u8:
    case DType::boolean:
      return llvm::Type::getInt8Ty(context);
    case DType::i64:
      return llvm::Type::getInt64Ty(context);
    case DType::i32:
      return llvm::Type::getInt32Ty(context);
  }
  return nullptr;
}

llvm::Type* with_lanes_of(llvm::Type* scalar, llvm::Type* like) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(like);
  return vector ? llvm::FixedVectorType::get(scalar, vector->getNumElements()) : scalar;
}

llvm::Constant* number(llvm::Type* type, double value) { return llvm::ConstantFP::get(type, value); }
llvm::Constant* integer(llvm::Type* type, int64_t value) { return llvm::ConstantInt::get(type, static_cast<uint64_t>(value), true); }

Value* splat(IrBuilder& b, Value* x, int lanes) {
  return lanes == 1 || x->getType()->isVectorTy() ? x : b.CreateVectorSplat(static_cast<unsigned>(lanes), x);
}

Value* bf16_bits_of_normal(IrBuilder& b, Value* x) {
  constexpr int kLanes = 16;
  const auto part = [&](int first) {
    std::vector<int> lanes;
    for (int k = 0; k < kLanes; ++k) lanes.push_back(first + k);
    return b.CreateShuffleVector(x, lanes);
  };
  Value* low = nullptr;
  if (lanes_of(x->getType()) == kLanes)
    low = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtneps2bf16_512, {}, {x});
  else
    low = b.CreateIntrinsic(llvm::Intrinsic::x86_avx512bf16_cvtne2ps2bf16_512, {}, {part(kLanes), part(0)});
  return b.CreateBitCast(low, with_lanes_of(b.getInt16Ty(), x->getType()));
}

Value* bf16_bits_of_rounded(IrBuilder& b, Value* x) {
  return b.CreateTrunc(b.CreateLShr(bit_cast(b, x, b.getInt32Ty()), 16), with_lanes_of(b.getInt16Ty(), x->getType()));
}

void prefetch(IrBuilder& b, Value* address, Prefetch how) {
  constexpr unsigned kFirst = 3, kSecond = 2;  // caches
  b.CreateIntrinsic(
      llvm::Intrinsic::prefetch, {b.getPtrTy()},
      {address, b.getInt32(how == Prefetch::to_write ? 1 : 0), b.getInt32(how == Prefetch::into_second ? kSecond : kFirst), b.getInt32(1)});
}

Value* from_storage(IrBuilder& b, Value* stored, DType dtype) {
  llvm::Type* words = with_lanes_of(b.getInt32Ty(), stored->getType());
  switch (dtype) {
    case DType::f64:
    case DType::real:
    case DType::f32:
    case DType::i64:
    case DType::i32:
      return stored;
    case DType::f16:
      return b.CreateFPExt(stored, with_lanes_of(b.getFloatTy(), stored->getType()));
    case DType::bf16:
      return bf16_value(b, b.CreateZExt(stored, words));
    case DType::f8e4m3:
    case DType::f8e5m2:
      return f8_value(b, b.CreateZExt(stored, words), dtype);
    case DType::u16:
    case DType::u8:
      return b.CreateZExt(stored, words);
    case DType::boolean:
      return b.CreateICmpNE(stored, integer(stored->getType(), 0));
  }
  return nullptr;
}

Value* to_storage(IrBuilder& b, Value* x, DType dtype) {
  llvm::Type* stored = with_lanes_of(storage_type(b.getContext(), dtype), x->getType());
  switch (dtype) {
    case DType::f64:
    case DType::real:
    case DType::f32:
    case DType::i64:
    case DType::i32:
      return x;
    case DType::f16:
      return b.CreateFPTrunc(x, stored);
    case DType::bf16:
      return b.CreateTrunc(bf16_bits(b, x), stored);
    case DType::f8e4m3:
    case DType::f8e5m2:
      return b.CreateTrunc(f8_bits(b, x, dtype), stored);
    case DType::u16:
    case DType::u8:
      return b.CreateTrunc(x, stored);
    case DType::boolean:
      return b.CreateZExt(x, stored);
  }
  return nullptr;
}

Value* round_to(IrBuilder& b, Value* x, DType dtype) {
  if (is_small_float(dtype) || dtype == DType::u8 || dtype == DType::u16) return from_storage(b, to_storage(b, x, dtype), dtype);
  return x;
}

Value* convert(IrBuilder& b, Value* x, DType from, DType to) {
  if (from == DType::real) from = DType::f32;
  if (to == DType::real) to = DType::f32;
  if (from == to) return x;
  llvm::Type* target = with_lanes_of(register_type(b.getContext(), to), x->getType());
  if (to == DType::boolean)
    return is_floating(from) ? b.CreateFCmpUNE(x, number(x->getType(), 0)) : b.CreateICmpNE(x, integer(x->getType(), 0));
  if (is_floating(from)) {
    if (is_small_float(to) && from == DType::f64) return round_to(b, to_float_by_odd(b, x, target), to);
    if (is_floating(to)) return round_to(b, b.CreateFPCast(x, target), to);
    const bool is_signed = to == DType::i32 || to == DType::i64;
    llvm::Type* exact = with_lanes_of(b.getIntNTy(static_cast<unsigned>(info(to).bits)), x->getType());
    Value* whole = b.CreateIntrinsic(is_signed ? llvm::Intrinsic::fptosi_sat : llvm::Intrinsic::fptoui_sat, {exact, x->getType()}, {x});
    return b.CreateZExtOrTrunc(whole, target);
  }
  if (is_small_float(to) && (from == DType::i32 || from == DType::i64)) {
    llvm::Type* doubles = with_lanes_of(b.getDoubleTy(), x->getType());
    return round_to(b, to_float_by_odd(b, b.CreateSIToFP(x, doubles), target), to);
  }
  if (is_floating(to)) return round_to(b, from == DType::boolean ? b.CreateUIToFP(x, target) : b.CreateSIToFP(x, target), to);
  if (from == DType::boolean) return b.CreateZExt(x, target);
  return round_to(b, b.CreateSExtOrTrunc(x, target), to);
}

}  // namespace einc
