// SPDX-License-Identifier: Apache-2.0
// The body of a scatter whose blocks have rows of the table (gpu_plan/scatter_blocks.h).
#pragma once
#include <string>

#include "compiler/gpu_plan/scatter_blocks.h"

namespace einc {

std::string scatter_text(const Kernel& kernel, const ScatterBlocks& plan);

}  // namespace einc
