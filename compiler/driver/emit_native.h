// SPDX-License-Identifier: Apache-2.0
// The forms of --emit below the graph, and why neighbours share a kernel or not. They need values for all dims.
#pragma once
#include <string>

#include "compiler/pipeline/cpu_program.h"

namespace einc {

// Each kernel: its launches' labels and sources, buffers and stages.
std::string emit_kernels(const LoweredGraph& lowered);
std::string explain_fusion(const LoweredGraph& lowered);

}  // namespace einc
