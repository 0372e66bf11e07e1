// SPDX-License-Identifier: Apache-2.0
// A square of elements, one vector per row, turned into one vector per column.
#pragma once
#include <vector>

#include "compiler/codegen/llvm/registers.h"

namespace einc {

// As many vectors as each has lanes, a power of two.
std::vector<llvm::Value*> transpose(IrBuilder& b, std::vector<llvm::Value*> rows);

}  // namespace einc
