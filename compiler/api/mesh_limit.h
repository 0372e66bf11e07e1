// SPDX-License-Identifier: Apache-2.0
// A limit of memory on a mesh is of a process, whose devices it holds. Each part that trains is planned again where all together take more;
// what other parts take is fixed by then. All processes choose alike, by what the one with the most bytes takes: they carry out one plan.
#pragma once
#include <functional>

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
using PlanPart = std::function<PartBytes(Part part, const MemoryLimit& limit, const CountPart& count)>;

// `parts` as they are, of which a process takes `bytes` in all, with `held` devices. `plan_again` plans a part under the limit, by `count`
// of what a choice would take.
void plan_within(const MemoryLimit& limit, PerPart<PartBytes> parts, int64_t bytes, int64_t held, const PlanPart& plan_again);

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
  int64_t bytes(const DevicePlan& plan, const RoundWork& work) const {
    return devices * plan.bytes(work.working, besides) + std::max(work.shared, shared);
  }
};
// By stage; none: it may stay as it is.
using StageLimits = std::vector<std::optional<StageLimit>>;
// That of a stage's round; null: none.
const StageLimit* limit_of(const StageLimits& limits, size_t stage, size_t round);

// `parts` as they are, whose plans are pipelines'; `part` is one that trains. `bytes_of`: what a process of so many takes in all.
StageLimits stage_limits(const MemoryLimit& limit, const MeshShape& mesh, const PerPart<MeshPlan>& parts, Part part, int64_t processes,
                         const std::function<int64_t(int64_t rank)>& bytes_of, const WorkOfRound& work);

}  // namespace einc
