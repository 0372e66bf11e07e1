// SPDX-License-Identifier: Apache-2.0
// Instructions for one elementwise function on registers.
#pragma once
#include <span>

#include "compiler/codegen/llvm/registers.h"
#include "compiler/ir/op.h"

namespace einc {

// Operands of dtype `operand` (registers; bool where the function wants it), result of dtype `result`, rounded to it.
llvm::Value* emit_map(IrBuilder& b, MapFn fn, std::span<llvm::Value* const> x, DType operand, DType result);

}  // namespace einc
