// SPDX-License-Identifier: Apache-2.0
// What a process that has one device of a mesh takes besides what the device computes with.
#pragma once
#include "compiler/cost/device.h"
#include "compiler/report/mesh_step.h"

namespace einc {

// On a processor the whole inputs, params and states, of the first process, and what is on its way to others; on a GPU blocks without gaps
// on their way. `graph`: the whole program's, which outlives the result.
ProcessBytes process_bytes_of(const Graph& graph, const Bindings& given, DeviceTarget target);

}  // namespace einc
