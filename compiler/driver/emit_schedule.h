// SPDX-License-Identifier: Apache-2.0
// --emit=schedule: how each function runs on this processor, as the plans of loops, tiles and attention decide it.
#pragma once
#include <string>

#include "compiler/lower/processor.h"
#include "compiler/pipeline/cpu_program.h"

namespace einc {

// Launches in their order, those of one function together where it first runs; axes are those of --emit=kernels.
std::string emit_schedule(const LoweredGraph& lowered, const Processor& processor);

}  // namespace einc
