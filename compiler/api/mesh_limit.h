// SPDX-License-Identifier: Apache-2.0
// A limit of memory on a mesh is of a process, whose devices it holds. Each part that trains is planned again where all together take more;
// what other parts take is fixed by then. All processes choose alike, by what the one with the most bytes takes: they carry out one plan.
#pragma once
#include <functional>

#include "compiler/api/compile_program.h"
#include "compiler/fuse/scheduling.h"
#include "compiler/report/planned_device.h"
#include "runtime/executor/session.h"
#include "runtime/mesh/mesh_plan.h"

namespace einc {

// What a part takes: of each device its values and what launches work in, which parts share, and once what devices share.
struct PartBytes {
  int64_t values = 0, working = 0, shared = 0;
};
using CountPart = std::function<int64_t(const PartBytes&)>;
using PlanPart = std::function<PartBytes(Part part, const std::optional<MemoryLimit>& limit, const CountPart& count)>;

// Plans all parts of a program without stages, and again under the limit, by `count` of what a choice would take, those that train.
// `most_bytes`: what the process with the most takes of what is planned by now, which has `held` devices.
void plan_parts(const ProgramGraphs& graphs, const std::optional<MemoryLimit>& limit, int64_t held, const PlanPart& plan,
                const std::function<int64_t()>& most_bytes);

// What launches of a stage's round work in on a device, and what devices share.
struct RoundWork {
  int64_t working = 0, shared = 0;
};
using WorkOfRound = std::function<RoundWork(Part part, size_t stage, size_t round)>;

// What the round of a microbatch, of one stage, is to keep within.
struct StageLimit {
  MemoryLimit limit;
  HeldBesides besides;  // `working`: of other rounds and parts
  int64_t devices = 1;  // of the stage, in one process
  int64_t shared = 0;   // of what its devices share, what others take
  // Of a plan with so much for values, and for what it keeps of each microbatch.
  int64_t bytes(int64_t values, int64_t kept, const RoundWork& work) const {
    return devices * besides.with(values, work.working, kept) + std::max(work.shared, shared);
  }
  int64_t bytes(const DevicePlan& plan, const RoundWork& work) const { return bytes(plan.values.bytes, plan.kept_of_microbatch(), work); }
};
// By stage; none: it may stay as it is.
using StageLimits = std::vector<std::optional<StageLimit>>;
// That of a stage's round; null: none.
const StageLimit* limit_of(const StageLimits& limits, size_t stage, size_t round);

// What planners of both kinds of devices tell of the pipelines that are planned by now.
struct PlannedPipelines {
  const MeshShape& mesh;
  const PerPart<MeshPlan>& parts;
  int64_t processes = 1;
  std::function<int64_t(int64_t rank)> bytes_of;  // what a process takes in all
  WorkOfRound work;
};
StageLimits stage_limits(const MemoryLimit& limit, const PlannedPipelines& planned, Part part);

// As plan_parts, of a program with stages.
void plan_pipelines(const ProgramGraphs& graphs, const std::optional<MemoryLimit>& limit,
                    const std::function<void(Part part, const StageLimits& limits)>& plan, const PlannedPipelines& planned);

}  // namespace einc
