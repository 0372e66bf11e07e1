// SPDX-License-Identifier: Apache-2.0
// A part of the program (forward, training, ...) becomes the graph of one device, which is compiled for a target like any program's.
#pragma once
#include <functional>

#include "compiler/api/compile_program.h"
#include "compiler/report/planned_device.h"
#include "runtime/mesh/mesh_plan.h"

namespace einc {

// Compiled as Localized::stores says.
struct CompiledDevice {
  DeviceCode code;
  DevicePlan plan;
};
using CompileDevice = std::function<CompiledDevice(const Localized& local, const DeviceProgram& program, const Bindings& dims)>;
// How a part's updates are made by devices that can store them in place.
inline DeviceUpdates updates_of(Part part) {
  return part == Part::training || part == Part::accumulation ? DeviceUpdates::in_place : DeviceUpdates::apart;
}

// Throws Error (program) for an op that cannot be split.
// The graph of one device. Throws Error (program) where it has none.
Localized device_graph(const Graph& graph, const Bindings& dims);

// `value_of`: by node of the device's graph, for those that have a place outside of launches.
struct PlannedMesh {
  MeshPlan plan;
  std::unordered_map<uint32_t, uint32_t> value_of;
  int64_t kept = 0;  // DevicePlan's
};
// Of a device's graph; gradients are left out.
PlannedMesh plan_device_graph(const Localized& local, const ProgramInfo& info, const Bindings& given, const CompileDevice& compile_device);
PartLayout layout_of(const DeviceValue& value);

MeshPlan plan_mesh(const Graph& graph, const ProgramInfo& info, const Bindings& given, DeviceUpdates updates,
                   const CompileDevice& compile_device);
// A plan of nothing but collectives, in the graph's order, and their operands and results, without places.
MeshPlan moved_values(const Localized& local, const Bindings& dims);
MeshShape mesh_shape(const ProgramGraphs& graphs);
bool has_stages(const ProgramGraphs& graphs);

}  // namespace einc
