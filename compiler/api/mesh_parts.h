// SPDX-License-Identifier: Apache-2.0
// A part of the program (forward, training, ...) becomes the graph of one device, that one's stages, and each stage code of a target like
// any program's.
#pragma once
#include <functional>

#include "compiler/api/compile_program.h"
#include "compiler/report/planned_stage.h"
#include "runtime/mesh/mesh_plan.h"

namespace einc {

// A stage without the values that it reads and makes. Compiled as RunMode::inference: it stores nothing, what sources take is stored when
// all stages are done.
struct CompiledStage {
  MeshStage stage;
  PlannedStage planned;
};
using CompileStage = std::function<CompiledStage(const DeviceStage& stage)>;

// Throws Error (program) for an op that cannot be split.
MeshPlan plan_mesh(const Graph& graph, const ProgramInfo& info, const Bindings& given, const CompileStage& compile_stage);
MeshShape mesh_shape(const ProgramGraphs& graphs);

}  // namespace einc
