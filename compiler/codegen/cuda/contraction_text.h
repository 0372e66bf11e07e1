// SPDX-License-Identifier: Apache-2.0
// The body of a contraction as tiles in shared memory (gpu_plan/contraction_tiles.h). What the operands are made of is computed while they
// are filled in, the epilogue on the sums.
#pragma once
#include <string>

#include "compiler/gpu_plan/contraction_tiles.h"

namespace einc {

std::string contraction_text(const ContractionTiles& tiles);

}  // namespace einc
