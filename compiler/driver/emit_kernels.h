// SPDX-License-Identifier: Apache-2.0
// The kernels of a program, of either target, and why neighbours share one or not. They need values for all dims.
#pragma once
#include <string>

#include "compiler/fuse/form_graph.h"
#include "runtime/program/executable.h"

namespace einc {

// Each kernel: its launches' labels and sources, buffers and stages.
std::string emit_kernels(const FormedGraph& formed, const Executable& program);
std::string explain_fusion(const FormedGraph& formed);

}  // namespace einc
