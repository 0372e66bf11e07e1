#pragma once
#include "compiler/codegen/llvm/registers.h"
#include "compiler/ir/op.h"
namespace einc {
llvm::Value* emit_random(IrBuilder& b, RandomKind kind, llvm::Value* key, llvm::Value* step, llvm::Value* index, double keep);
}
