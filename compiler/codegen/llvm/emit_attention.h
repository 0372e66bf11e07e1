// SPDX-License-Identifier: Apache-2.0
// A tiled attention kernel as a function of LLVM IR: for each block of rows the scores into tiles, loops over the keys with
// lanes along the rows, then products of the tiles with what lies per key or per row.
#pragma once
#include <string>

#include "compiler/lower/tile_attention.h"

namespace llvm {
class Module;
}

namespace einc {

void emit_attention(llvm::Module& module, const std::string& name, const TiledAttention& plan);

}  // namespace einc
