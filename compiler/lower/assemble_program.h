// SPDX-License-Identifier: Apache-2.0
// The buffers, launches and results of an executable, the same for every target; which function a launch calls is the target's.
#pragma once
#include <functional>
#include <string>

#include "compiler/lower/buffer_plan.h"
#include "runtime/program/executable.h"

namespace einc {

// Sets function and domain of a launch whose other fields, and the buffers that it names, are there. `graph` and `program` are the whole's
// or those of a scan's body; launches of an iteration are chosen before the scan's own, which has no function.
using ChooseFunction = std::function<void(const BoundGraph& graph, const GraphKernel& kernel, const Executable& program, Launch& launch)>;

// "h.0.mlp up", after the last value that a launch makes: the source's name for it, else its op.
std::string launch_label(const Node& last);

Executable assemble_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const ChooseFunction& choose);

}  // namespace einc
