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

}  // namespace

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

const StageLimit* limit_of(const StageLimits& limits, size_t stage, size_t round) {
  return round == kRoundOfMicrobatches && !limits.empty() && limits[stage] ? &*limits[stage] : nullptr;
}

StageLimits stage_limits(const MemoryLimit& limit, const MeshShape& mesh, const PerPart<MeshPlan>& parts, Part part, int64_t processes,
                         const std::function<int64_t(int64_t rank)>& bytes_of, const WorkOfRound& work) {
  const PipelinePlan& pipeline = *parts[part]->pipeline;
  const auto kept_of = [&](size_t s) { return pipeline.stages[s].rounds[kRoundOfMicrobatches].plan.kept + pipeline.stages[s].kept; };
  const auto work_besides = [&](size_t s) {
    RoundWork most;
    for (size_t p = 0; p < kParts; ++p) {
      const Part other = static_cast<Part>(p);
      for (size_t r = 0; parts[other] && r < parts[other]->pipeline->stages[s].rounds.size(); ++r) {
        if (other == part && r == kRoundOfMicrobatches) continue;
        const RoundWork of = work(other, s, r);
        most = {std::max(most.working, of.working), std::max(most.shared, of.shared)};
      }
    }
    return most;
  };
  StageLimits limits(pipeline.stages.size());
  for (int64_t rank = 0; rank < processes; ++rank) {
    const int64_t bytes = bytes_of(rank);
    if (bytes == INT64_MAX || bytes + limit.taken <= limit.bytes) continue;
    const auto excess = static_cast<double>(bytes + limit.taken - limit.bytes);
    const StageBlocks blocks = blocks_of(mesh, pipeline, processes, rank);
    const int64_t ways = blocks.held(pipeline.microbatches);
    double kept = 0;  // of a device in each stage
    for (int64_t s = blocks.first(); s < blocks.last(); ++s) kept += static_cast<double>(kept_of(static_cast<size_t>(s)));
    for (int64_t stage = blocks.first(); stage < blocks.last(); ++stage) {
      const auto s = static_cast<size_t>(stage);
      const RoundWork others = work_besides(s), own = work(part, s, kRoundOfMicrobatches);
      StageLimit made{limit, {0, others.working, 0, ways - 1}, blocks.held_devices(mesh.devices() / processes), others.shared};
      int64_t values = 0;
      for (const StageRound& round : pipeline.stages[s].rounds) values += round.plan.bytes;
      made.besides.values = values - pipeline.stages[s].rounds[kRoundOfMicrobatches].plan.bytes;
      const int64_t as_is =
          made.devices * (values + std::max(own.working, others.working) + (ways - 1) * kept_of(s)) + std::max(own.shared, others.shared);
      const double share = kept > 0 ? static_cast<double>(kept_of(s)) / kept : 1;
      const auto given_up = static_cast<int64_t>(std::ceil(excess * share));
      made.limit.taken = limit.bytes - (as_is - given_up);
      if (!limits[s] || limits[s]->limit.taken < made.limit.taken) limits[s] = made;
    }
  }
  return limits;
}

}  // namespace einc
