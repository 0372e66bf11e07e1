// SPDX-License-Identifier: Apache-2.0
// The innermost loop of contractions: a block of sums in registers, one operand's elements spread over all lanes, the
// other's vectors.
#pragma once
#include <functional>
#include <vector>

#include "compiler/codegen/llvm/registers.h"

namespace einc {

// Element (r, t) of the narrow operand is at base + r*row + t*depth, vectors of the wide one at base + t*depth.
struct NarrowOperand {
  llvm::Value* base;
  int64_t row, depth;
};
// The wide one may be stored in bf16 where the sums are f32. What lies `fetched_ahead` bytes behind a vector is fetched with it. Vectors
// are neighbours, or lie `across` elements apart.
struct WideOperand {
  llvm::Value* base;
  int64_t depth;
  llvm::Align align;
  DType dtype = DType::f32;
  int64_t fetched_ahead = 0;
  int64_t across = 0;
};
// What is added to a sum: the product of two elements, or, where elements are pairs of bf16, the products of both.
enum class Product : uint8_t { of_elements, of_pairs };

struct RegisterBlock {
  using Sums = std::vector<llvm::Value*>;  // row by row

  IrBuilder& b;
  llvm::FixedVectorType* vector;
  llvm::Align element_align;
  int rows, vectors;
  llvm::Value* tail;  // the lanes of the last vector that are read; null: all
  Product product = Product::of_elements;

  // sums[r][v] += sum over t < steps * unroll of narrow(r, t) * wide(t, v), in that order. Both operands are moved on.
  Sums multiply(NarrowOperand& narrow, WideOperand& wide, llvm::Value* steps, int unroll, Sums sums) const;
  // The same in `phases` phases of `length` steps, the last ones maybe shorter. `before` is called with the number of each.
  Sums multiply_in_phases(NarrowOperand& narrow, WideOperand& wide, llvm::Value* steps, int unroll, int64_t phases, int64_t length,
                          Sums sums, const std::function<void(llvm::Value*)>& before) const;

  // The same over `count` groups of `steps * unroll` depths; from group to group the narrow operand's elements lie `apart` further.
  Sums multiply_in_groups(NarrowOperand& narrow, WideOperand& wide, llvm::Value* count, int64_t steps, int unroll, int64_t apart,
                          Sums sums) const;

  // The type of the wide operand's elements, and a vector of them as the sums' dtype: of the lanes in a mask, or all.
  llvm::Type* stored(const WideOperand& wide) const;
  llvm::Value* load(const WideOperand& wide, int64_t elements, llvm::Value* mask) const;

  // body(i, sums) for i < count makes the sums of each turn.
  Sums repeat(llvm::Value* count, Sums sums, const std::function<Sums(llvm::Value*, Sums)>& body) const;

 private:
  // The same; the operands move on as well.
  Sums loop(NarrowOperand& narrow, WideOperand& wide, llvm::Value* count, Sums sums,
            const std::function<Sums(llvm::Value*, Sums)>& body) const;
  llvm::Value* at(llvm::Value* base, int64_t elements) const;
  llvm::Value* at(const WideOperand& wide, int64_t elements) const;
  llvm::Value* add_product(llvm::Value* x, llvm::Value* y, llvm::Value* sum) const;
  void step(const NarrowOperand& narrow, const WideOperand& wide, int t, Sums& sums) const;
};

}  // namespace einc
