// SPDX-License-Identifier: Apache-2.0
// A tiled contraction as a function of LLVM IR: loops over blocks and tiles, panels filled with the operands' values, a
// microkernel that keeps its sums in registers, and the kernel's stores on those sums.
#pragma once
#include <string>

#include "compiler/lower/tile_contraction.h"

namespace llvm {
class Module;
}

namespace einc {

void emit_contraction(llvm::Module& module, const std::string& name, const TiledContraction& plan);

}  // namespace einc
