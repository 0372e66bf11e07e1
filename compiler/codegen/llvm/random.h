// The draws of runtime/base/random.h as straight-line code, bit for bit.
#pragma once
#include "compiler/codegen/llvm/registers.h"
#include "compiler/ir/op.h"

namespace einc {

// Element `index` (i64, or a vector of them) of a stream. `key` is its Philox key, first word low, and `step` the run's, both i64.
// A uniform or normal number is a double, a mask i1; only the mask asks for `keep`.
llvm::Value* emit_random(IrBuilder& b, RandomKind kind, llvm::Value* key, llvm::Value* step, llvm::Value* index, double keep);

}  // namespace einc
