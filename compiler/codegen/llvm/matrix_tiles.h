// SPDX-License-Identifier: Apache-2.0
// The processor's eight matrix registers, all set to 16 rows of 64 bytes: 16 x 16 f32 sums, 16 rows of 32 bf16 of a left operand,
// or pairs along the depth of 16 columns of a right one. Registers 0 to 3 hold sums, 4 and 5 left tiles, 6 and 7 right ones.
#pragma once
#include <llvm/IR/Module.h>

#include "compiler/codegen/llvm/registers.h"

namespace einc {

struct MatrixTiles {
  static constexpr int64_t kRows = 16, kBytes = 1024, kRowBytes = 64;
  IrBuilder& b;

  void configure(llvm::Module& module) const;
  void release() const;
  void clear(int tile) const;
  // Rows `pitch` bytes apart.
  void load(int tile, llvm::Value* from, int64_t pitch) const;
  // The same of what need not stay in the first cache.
  void load_passing(int tile, llvm::Value* from, int64_t pitch) const;
  void store(int tile, llvm::Value* to, int64_t pitch) const;
  // sums[2 * row + column] += left[row] * right[column], for the first `down` rows and `across` columns of tiles.
  void multiply(int down, int across) const;
};

}  // namespace einc
