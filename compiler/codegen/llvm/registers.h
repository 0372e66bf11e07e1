// SPDX-License-Identifier: Apache-2.0
// Values in registers: small floats as float, small integers as i32, bool as i1; f64 and i64 as they are. One value or a
// vector of lanes. Conversions between storage formats and registers round to nearest even.
#pragma once
#include <llvm/IR/IRBuilder.h>

#include "runtime/base/dtype.h"

namespace einc {

using IrBuilder = llvm::IRBuilder<>;

llvm::Type* register_type(llvm::LLVMContext& context, DType dtype);
llvm::Type* storage_type(llvm::LLVMContext& context, DType dtype);

// `scalar`, or a vector of it when like is one.
llvm::Type* with_lanes_of(llvm::Type* scalar, llvm::Type* like);
inline int lanes_of(llvm::Type* type) {
  const auto* vector = llvm::dyn_cast<llvm::FixedVectorType>(type);
  return vector ? static_cast<int>(vector->getNumElements()) : 1;
}

llvm::Value* from_storage(IrBuilder& b, llvm::Value* stored, DType dtype);
llvm::Value* to_storage(IrBuilder& b, llvm::Value* x, DType dtype);

// Rounds a float in a register to a smaller format; wraps an integer to a shorter one. Nothing for other dtypes.
llvm::Value* round_to(IrBuilder& b, llvm::Value* x, DType dtype);
// The op cast: numbers to bool is x != 0; floats to integers go towards zero, stop at the ends, NaN gives 0.
llvm::Value* convert(IrBuilder& b, llvm::Value* x, DType from, DType to);

// Of 16 or 32 floats the bits in bf16 by the processor's instruction for it, which takes subnormal numbers for 0.
llvm::Value* bf16_bits_of_normal(IrBuilder& b, llvm::Value* x);
// Of a bf16 in a register, which is not rounded again.
llvm::Value* bf16_bits_of_rounded(IrBuilder& b, llvm::Value* x);

// Asks for the line of memory at an address: to read it from the first cache or the second, or to write to it.
enum class Prefetch : uint8_t { into_first, into_second, to_write };
void prefetch(IrBuilder& b, llvm::Value* address, Prefetch how);

llvm::Value* splat(IrBuilder& b, llvm::Value* x, int lanes);
llvm::Constant* number(llvm::Type* type, double value);    // of a floating type or vector of it
llvm::Constant* integer(llvm::Type* type, int64_t value);  // of an integer type or vector of it

}  // namespace einc
