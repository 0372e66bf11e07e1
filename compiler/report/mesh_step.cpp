// SPDX-License-Identifier: Apache-2.0
// Layers have the same stages: of those that are alike one is planned.
#include "compiler/report/mesh_step.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/attr_hash.h"
#include "compiler/partition/localize.h"
#include "compiler/report/planned_stage.h"
#include "compiler/report/schedule.h"

namespace einc {
namespace {

bool is_value(Name input) { return input.str().starts_with(kValuePrefix); }

// But for the names of what is given to it, and where it stands in the source.
bool are_alike(const Node& a, const Node& b) {
  if (a.op != b.op || !std::ranges::equal(a.operands, b.operands) || a.type.dtype != b.type.dtype) return false;
  if (a.origin.phase != b.origin.phase || a.origin.policy != b.origin.policy) return false;
  if (!std::ranges::equal(a.type.axes, b.type.axes, {}, &Axis::size, &Axis::size)) return false;
  if (a.op == Op::input) return is_value(a.as<InputAttr>().name) == is_value(b.as<InputAttr>().name);
  return is_source(a.op) || a.attr == b.attr;
}

bool are_alike(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.nodes, b.nodes, [](const Node& x, const Node& y) { return are_alike(x, y); }) &&
         std::ranges::equal(a.outputs, b.outputs, {}, &Output::node, &Output::node);
}

size_t hash_of(const Graph& graph) {
  size_t hash = graph.nodes.size();
  for (const Node& node : graph.nodes) {
    hash = mix(hash, static_cast<size_t>(node.op));
    for (const NodeId operand : node.operands) hash = mix(hash, operand.index);
  }
  return hash;
}

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
    std::vector<Known>& known = known_[hash_of(stage.graph)];
    for (const Known& k : known)
      if (are_alike(*k.stage, stage.graph)) return k.timed.get();
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
