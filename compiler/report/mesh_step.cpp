// SPDX-License-Identifier: Apache-2.0
// Layers have the same stages: of those that are alike one is planned.
#include "compiler/report/mesh_step.h"

#include <unordered_map>

#include "compiler/partition/localize.h"
#include "compiler/report/like_stages.h"
#include "compiler/report/planned_stage.h"
#include "compiler/report/schedule.h"

namespace einc {
namespace {

// Places, and the seconds of all launches before each, and of all.
struct TimedStage {
  PlannedStage planned;
  std::vector<double> before;
};

class StagePlanner {
 public:
  StagePlanner(const Bindings& given, const PlanStep& plan, const Device& device) : given_(given), plan_(plan), device_(device) {}

  // The stage outlives this. Null: a launch has no time.
  const TimedStage* timed(const DeviceStage& stage) {
    std::vector<Known>& known = known_[plan_hash(stage.graph)];
    for (const Known& k : known)
      if (plan_alike(*k.stage, stage.graph)) return k.timed.get();
    return known.emplace_back(Known{&stage.graph, made(stage)}).timed.get();
  }

 private:
  std::unique_ptr<const TimedStage> made(const DeviceStage& stage) const {
    const PlannedStep step = plan_(stage.graph, given_, RunMode::inference);
    std::vector<uint32_t> row_of;
    const std::vector<LaunchReport> rows = schedule_report(*step.formed, {&device_, step.processor, {}}, row_of);
    TimedStage timed{planned_stage(stage, *step.formed), {0}};
    for (const uint32_t row : row_of) {
      if (row != kNoRow && !rows[row].time_s) return nullptr;
      timed.before.push_back(timed.before.back() + (row == kNoRow ? 0 : *rows[row].time_s));
    }
    return std::make_unique<const TimedStage>(std::move(timed));
  }

  struct Known {
    const Graph* stage;
    std::unique_ptr<const TimedStage> timed;
  };
  const Bindings& given_;
  const PlanStep& plan_;
  const Device& device_;
  std::unordered_map<size_t, std::vector<Known>> known_;
};

}  // namespace

std::optional<DeviceTimeline> mesh_step(const Partitioned& partitioned, const Bindings& given, const PlanStep& plan, const Device& device,
                                        std::span<const double> collective_s) {
  const auto made = localize(partitioned);
  const auto* local = std::get_if<Localized>(&made);
  if (!local) return std::nullopt;
  const DeviceStages cut = cut_at_collectives(local->graph, results_of(*local));
  StagePlanner planner(given, plan, device);
  std::vector<const TimedStage*> timed;
  std::vector<PlannedStage> planned;
  for (const DeviceStage& stage : cut.stages) {
    timed.push_back(planner.timed(stage));
    if (timed.back() == nullptr) return std::nullopt;
    planned.push_back(timed.back()->planned);
  }
  const DeviceSchedule schedule = schedule_device(local->graph, cut, planned);
  std::unordered_map<uint32_t, size_t> place;  // in collective_s, by node
  for (size_t i = 0; i < local->collectives.size(); ++i) place.emplace(local->collectives[i].index, i);
  std::vector<double> seconds;
  for (const NodeId id : schedule.collectives) seconds.push_back(collective_s[place.at(id.index)]);
  DeviceTimeline line = device_timeline(
      schedule.steps, [&](const DeviceStep& step) { return timed[step.index]->before[step.last] - timed[step.index]->before[step.first]; },
      seconds);
  std::vector<double> exposed(collective_s.size(), 0);
  for (size_t n = 0; n < schedule.collectives.size(); ++n) exposed[place.at(schedule.collectives[n].index)] = line.exposed_s[n];
  line.exposed_s = std::move(exposed);
  return line;
}

}  // namespace einc
