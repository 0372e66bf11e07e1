// SPDX-License-Identifier: Apache-2.0
// A part of a program over a mesh with stages: a device's graph of one microbatch is cut into those of the stages (partition/cut_stages.h),
// each is planned like any device's, and values find one another by the nodes of the whole.
#pragma once
#include "compiler/api/mesh_parts.h"
#include "runtime/mesh/pipeline_plan.h"

namespace einc {

struct StagedPlan {
  MeshPlan whole;
  std::shared_ptr<PipelinePlan> pipeline;  // the whole's
};

// The dims that a part's devices compute with: those of a microbatch, where it has some.
Bindings dims_of_part(const Graph& graph, Part part, const Bindings& given);

// Of each stage's rounds, in their order, but for those that have nothing to do.
using CompileRound =
    std::function<CompiledDevice(size_t stage, size_t round, const Localized& local, const DeviceProgram& program, const Bindings& dims)>;

// Microbatches are of parts that train; others run all examples at once. Throws Error (program) for what stages cannot carry out.
StagedPlan plan_stages(const Graph& graph, Part part, const ProgramInfo& info, const Bindings& given, const CompileRound& compile_round);

}  // namespace einc
