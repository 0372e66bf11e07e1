// SPDX-License-Identifier: Apache-2.0
// A part of the program (forward, training, ...) becomes the graph of one device, which is compiled for a target like any program's.
#pragma once
#include <functional>

#include "compiler/api/compile_program.h"
#include "compiler/report/planned_device.h"
#include "runtime/mesh/mesh_plan.h"

namespace einc {

// Compiled as RunMode::inference: it stores nothing, what sources take is stored when the run is over.
struct CompiledDevice {
  DeviceCode code;
  DevicePlan plan;
};
using CompileDevice = std::function<CompiledDevice(const Localized& local, const DeviceProgram& program, const Bindings& dims)>;

// Throws Error (program) for an op that cannot be split.
MeshPlan plan_mesh(const Graph& graph, const ProgramInfo& info, const Bindings& given, const CompileDevice& compile_device);
// A plan of nothing but collectives, in the graph's order, and their operands and results, without places.
MeshPlan moved_values(const Localized& local, const Bindings& dims);
MeshShape mesh_shape(const ProgramGraphs& graphs);

}  // namespace einc
