// SPDX-License-Identifier: Apache-2.0
#include "compiler/api/mesh_limit.h"

#include <algorithm>
#include <cmath>

#include "runtime/mesh/pipeline_plan.h"
#include "runtime/mesh/stage_order.h"

namespace einc {
namespace {

// Parts run one after another in the same memory, but have values of their own.
PartBytes beside_one_another(const PartBytes& a, const PartBytes& b) {
  return {a.values + b.values, std::max(a.working, b.working), std::max(a.shared, b.shared)};
}

// `parts` as they are, of which a process takes `bytes` in all.
void plan_within(const MemoryLimit& limit, PerPart<PartBytes> parts, int64_t bytes, int64_t held, const PlanPart& plan_again) {
  if (bytes == INT64_MAX || bytes + limit.taken <= limit.bytes) return;
  const auto of_devices = [held](const PartBytes& p) { return held * (p.values + p.working) + p.shared; };
  PartBytes all;
  for (const std::optional<PartBytes>& part : parts)
    if (part) all = beside_one_another(all, *part);
  const int64_t others_of_process = bytes - of_devices(all);
  for (const Part part : {Part::accumulation, Part::training}) {
    if (!parts[part]) continue;
    PartBytes others;
    for (size_t p = 0; p < kParts; ++p) {
      const Part other = static_cast<Part>(p);
      if (other == part || !parts[other]) continue;
      PartBytes beside = *parts[other];
      if (part == Part::accumulation && other == Part::training) beside.working = beside.shared = 0;  // is planned again, too
      others = beside_one_another(others, beside);
    }
    MemoryLimit own = limit;
    own.taken += others_of_process;
    parts[part] = plan_again(part, own, [=](const PartBytes& choice) { return of_devices(beside_one_another(others, choice)); });
  }
}

void for_each_part(const ProgramGraphs& graphs, const auto& visit) {
  for (size_t p = 0; p < kParts; ++p)
    if (const Part part = static_cast<Part>(p); graphs.parts[part]) visit(part);
}

int64_t kept_bytes(const PipelineStage& stage) { return stage.rounds[kRoundOfMicrobatches].plan.kept + stage.kept; }

// The most that rounds of a stage work in, of all parts that run on its devices, but that of this part's microbatches.
RoundWork most_work_besides(const PlannedPipelines& planned, Part part, size_t stage) {
  RoundWork most;
  for (size_t p = 0; p < kParts; ++p) {
    const Part other = static_cast<Part>(p);
    for (size_t r = 0; planned.parts[other] && r < planned.parts[other]->pipeline->stages[stage].rounds.size(); ++r) {
      if (other == part && r == kRoundOfMicrobatches) continue;
      const RoundWork of = planned.work(other, stage, r);
      most = {std::max(most.working, of.working), std::max(most.shared, of.shared)};
    }
  }
  return most;
}

// Of a stage that is to give up so many bytes in one process, which has that block of stages.
StageLimit limit_without(const MemoryLimit& limit, const PlannedPipelines& planned, Part part, const StageBlocks& blocks, size_t stage,
                         int64_t given_up) {
  const PipelinePlan& pipeline = *planned.parts[part]->pipeline;
  const PipelineStage& of = pipeline.stages[stage];
  const MeshPlan& each = of.rounds[kRoundOfMicrobatches].plan;
  const RoundWork others = most_work_besides(planned, part, stage), own = planned.work(part, stage, kRoundOfMicrobatches);
  StageLimit made;
  made.limit = limit, made.shared = others.shared;
  made.devices = blocks.held_devices(planned.mesh.devices() / planned.processes);
  made.besides.working = others.working, made.besides.further = blocks.held(pipeline.microbatches) - 1;
  for (const StageRound& round : of.rounds)
    if (&round.plan != &each) made.besides.values += round.plan.bytes;
  // What others take is all but the stage's own, so that the error of a limit that is too small tells of the whole process.
  made.limit.taken = limit.bytes + given_up - made.bytes(each.bytes, kept_bytes(of), own);
  return made;
}

}  // namespace

void plan_parts(const ProgramGraphs& graphs, const std::optional<MemoryLimit>& limit, int64_t held, const PlanPart& plan,
                const std::function<int64_t()>& most_bytes) {
  PerPart<PartBytes> bytes;
  for_each_part(graphs, [&](Part part) { bytes[part] = plan(part, {}, {}); });
  if (limit) plan_within(*limit, bytes, most_bytes(), held, plan);
}

const StageLimit* limit_of(const StageLimits& limits, size_t stage, size_t round) {
  return round == kRoundOfMicrobatches && !limits.empty() && limits[stage] ? &*limits[stage] : nullptr;
}

// Bytes are given up by what stages keep of forwards for backwards, which alone can be made again.
StageLimits stage_limits(const MemoryLimit& limit, const PlannedPipelines& planned, Part part) {
  const PipelinePlan& pipeline = *planned.parts[part]->pipeline;
  StageLimits limits(pipeline.stages.size());
  for (int64_t rank = 0; rank < planned.processes; ++rank) {
    const int64_t bytes = planned.bytes_of(rank);
    if (bytes == INT64_MAX || bytes + limit.taken <= limit.bytes) continue;
    const auto excess = static_cast<double>(bytes + limit.taken - limit.bytes);
    const StageBlocks blocks = blocks_of(planned.mesh, pipeline, planned.processes, rank);
    const auto first = static_cast<size_t>(blocks.first()), last = static_cast<size_t>(blocks.last());
    double kept = 0;
    for (size_t s = first; s < last; ++s) kept += static_cast<double>(kept_bytes(pipeline.stages[s]));
    for (size_t s = first; s < last; ++s) {
      const double share = kept > 0 ? static_cast<double>(kept_bytes(pipeline.stages[s])) / kept : 1;
      StageLimit made = limit_without(limit, planned, part, blocks, s, static_cast<int64_t>(std::ceil(excess * share)));
      // Of processes that have parts of one stage the first takes more: whole tensors. All carry out one plan.
      if (!limits[s] || limits[s]->limit.taken < made.limit.taken) limits[s] = std::move(made);
    }
  }
  return limits;
}

void plan_pipelines(const ProgramGraphs& graphs, const std::optional<MemoryLimit>& limit,
                    const std::function<void(Part part, const StageLimits& limits)>& plan, const PlannedPipelines& planned) {
  for_each_part(graphs, [&](Part part) { plan(part, {}); });
  for (const Part part : {Part::accumulation, Part::training})
    if (limit && graphs.parts[part]) plan(part, stage_limits(*limit, planned, part));
}

}  // namespace einc
