// SPDX-License-Identifier: Apache-2.0
// --emit=schedule: the schedule as the text that reads back (lower/schedule_text.h), before each kernel how it runs: as the plans of loops,
// tiles and attention of a processor decide it, or a GPU's blocks and threads.
#pragma once
#include <string>

#include "compiler/lower/processor.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/cuda_program.h"

namespace einc {

std::string emit_schedule(const LoweredGraph& lowered, const Processor& processor);
std::string emit_schedule(const CudaProgramText& program);

}  // namespace einc
