// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/mesh_step.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/lower/assemble_program.h"
#include "compiler/partition/place_stages.h"
#include "compiler/report/planned_device.h"
#include "compiler/report/schedule.h"

namespace einc {
namespace {

// Whether a launch's work serves all microbatches of a step.
std::vector<bool> launches_of_weights(const FormedGraph& formed) {
  const std::vector<bool> weights = of_weights_alone(formed.bound.graph);
  std::vector<bool> launches;
  for (const GraphKernel& k : formed.list.kernels)
    launches.push_back(std::ranges::all_of(k.group.members, [&](NodeId id) { return weights[id.index]; }));
  return launches;
}

struct LaunchTimes {
  std::vector<double> before{0};  // seconds of all launches before each place, and of all
  PhaseSeconds phases;
};

// Nothing: a launch has no time.
std::optional<LaunchTimes> launch_times(const PlannedStep& step, const Device& device, const std::vector<bool>& of_weights) {
  std::vector<uint32_t> row_of;
  const std::vector<LaunchReport> rows = schedule_report(*step.formed, {&device, step.processor, {}}, row_of);
  LaunchTimes times;
  for (uint32_t l = 0; l < row_of.size(); ++l) {
    const LaunchReport* row = row_of[l] == kNoRow ? nullptr : &rows[row_of[l]];
    if (row != nullptr && !row->time_s) return std::nullopt;
    const double seconds = row == nullptr ? 0 : *row->time_s;
    times.before.push_back(times.before.back() + seconds);
    if (row == nullptr) continue;
    double& phase = row->phase == Phase::optimizer  ? times.phases.update
                    : of_weights[l]                 ? times.phases.weights
                    : row->phase == Phase::backward ? times.phases.backward
                                                    : times.phases.forward;
    phase += seconds;
  }
  return times;
}

DeviceTimeline timeline(const Localized& local, const DevicePlan& plan, const std::vector<double>& before,
                        std::span<const double> collective_s) {
  std::unordered_map<uint32_t, size_t> place;  // in collective_s, by node
  for (size_t i = 0; i < local.collectives.size(); ++i) place.emplace(local.collectives[i].index, i);
  std::vector<double> seconds;
  for (const NodeId id : plan.schedule.collectives) seconds.push_back(collective_s[place.at(id.index)]);
  DeviceTimeline line = device_timeline(
      plan.schedule.steps, [&](const DeviceStep& s) { return before[s.last] - before[s.first]; }, seconds);
  std::vector<double> exposed(collective_s.size(), 0);
  for (size_t n = 0; n < seconds.size(); ++n) exposed[place.at(plan.schedule.collectives[n].index)] = line.exposed_s[n];
  line.exposed_s = std::move(exposed);
  return line;
}

}  // namespace

MeshStep device_step(const Localized& local, const Bindings& given, const PlanStep& plan, const ProcessBytes& process_bytes,
                     const HeldBesides& held, const Device* device, std::span<const double> collective_s) {
  const Bindings dims = local.graph.dims.bind(given).values;
  const DeviceProgram program = device_program(local.graph, results_of(local));
  MeshStep result;
  result.process = process_bytes ? process_bytes(local, dims) : 0;
  const auto working = [](const FormedView& formed, const BesidePlan& besides) {
    return formed.plan.own_bytes + besides.bytes + besides.shared;
  };
  const PlannedStep step = plan(program.graph, given, RunMode::inference, [&](const FormedView& formed, const BesidePlan& besides) {
    const DeviceValues values = plan_device(local, program, dims, formed, besides.places).values;
    const int64_t others = held ? held(formed.plan.saved_bytes + values.kept) : 0;
    return result.process + values.bytes + working(formed, besides) + others;
  });
  const DevicePlan planned = plan_device(local, program, dims, step.formed->view(), step.besides.places);
  result.values = planned.values.bytes;
  result.working = working(step.formed->view(), step.besides);
  result.kept = step.formed->plan.saved_bytes, result.values_kept = planned.values.kept;
  result.executed = executed_work(step.formed->list).flops;
  const std::vector<bool> of_weights = launches_of_weights(*step.formed);
  result.executed_once = executed_work(step.formed->list, [&](size_t l) {
                           const NodeId first = step.formed->list.kernels[l].group.members.front();
                           return of_weights[l] || step.formed->bound.graph[first].origin.phase == Phase::optimizer;
                         }).flops;
  for (const NodeId id : step.formed->recomputation.values) result.recomputed.push_back(launch_label(program.graph[id]));
  if (!device || collective_s.size() != local.collectives.size()) return result;
  const auto times = launch_times(step, *device, of_weights);
  if (!times) return result;
  result.line = timeline(local, planned, times->before, collective_s);
  result.seconds = times->phases;
  return result;
}

std::optional<MeshStep> mesh_step(const Partitioned& partitioned, const Bindings& given, const PlanStep& plan,
                                  const ProcessBytes& process_bytes, const Device* device, std::span<const double> collective_s) {
  const auto made = localize(partitioned);
  const auto* local = std::get_if<Localized>(&made);
  if (!local) return std::nullopt;
  return device_step(*local, given, plan, process_bytes, {}, device, collective_s);
}

}  // namespace einc
