// SPDX-License-Identifier: Apache-2.0
// A processor's plan as the rest of a line of a schedule, without what follows from its kernel:
//   loops lanes 64 stage_vectors a2 a2 divided a0 a1 domain 128
//   tiles lanes 16 tile_rows 8 tile_vectors 3 block_rows 128 ... left by_depth
//   loops alone lanes 64 ...
//   attention lanes 16 products ( inner a3 left_panel 0 tile_rows 12 ) ( ) ... elements 4096
#pragma once
#include <string>

#include "compiler/ir/cursor.h"
#include "compiler/lower/processor_plan.h"

namespace einc {

std::string to_string(const ProcessorPlan& plan);

// A plan for the kernel; the line fails where it is none.
ProcessorPlan read_processor_plan(Cursor& line, const Kernel& kernel);

}  // namespace einc
