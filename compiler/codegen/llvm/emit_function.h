// SPDX-License-Identifier: Apache-2.0
// A planned kernel as a function, by tiles or by loops.
#pragma once
#include "compiler/codegen/llvm/emit_attention.h"
#include "compiler/codegen/llvm/emit_contraction.h"
#include "compiler/codegen/llvm/emit_kernel.h"
#include "compiler/lower/make_program.h"

namespace einc {

inline void emit_function(llvm::Module& module, const std::string& name, const PlannedKernel& f) {
  if (f.attention)
    emit_attention(module, name, *f.attention);
  else if (f.tiles)
    emit_contraction(module, name, *f.tiles);
  else
    emit_kernel(module, name, *f.kernel, f.plan);
}

}  // namespace einc
