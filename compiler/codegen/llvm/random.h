// SPDX-License-Identifier: Apache-2.0
// The draws of runtime/base/random.h as straight-line code, bit for bit.
#pragma once
#include "compiler/codegen/llvm/registers.h"
#include "compiler/ir/op.h"

namespace einc {

// Element `index` (i64, or a vector of them) of a stream. `key` is its Philox key, first word low, and `step` the run's, both i64.
// A uniform, normal or Gumbel number is a double, bits i64, a mask i1; only the mask asks for `keep`.
llvm::Value* emit_random(IrBuilder& b, RandomKind kind, llvm::Value* key, llvm::Value* step, llvm::Value* index, double keep);

// Elements that one block of the generator holds.
inline constexpr int kRandomBlock = 4;

// The same for `lanes` elements that follow each other, whole blocks of them and two blocks at least, from `first` on, which begins a
// block: a block is made once, and not for each of its elements.
llvm::Value* emit_random_blocks(IrBuilder& b, RandomKind kind, llvm::Value* key, llvm::Value* step, llvm::Value* first, int lanes,
                                double keep);

}  // namespace einc
