// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/mesh_step.h"

#include <unordered_map>

#include "compiler/lower/assemble_program.h"
#include "compiler/report/planned_device.h"
#include "compiler/report/schedule.h"

namespace einc {
namespace {

// Seconds of all launches before each place, and of all. Nothing: a launch has no time.
std::optional<std::vector<double>> seconds_before(const PlannedStep& step, const Device& device) {
  std::vector<uint32_t> row_of;
  const std::vector<LaunchReport> rows = schedule_report(*step.formed, {&device, step.processor, {}}, row_of);
  std::vector<double> before{0};
  for (const uint32_t row : row_of) {
    if (row != kNoRow && !rows[row].time_s) return std::nullopt;
    before.push_back(before.back() + (row == kNoRow ? 0 : *rows[row].time_s));
  }
  return before;
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

std::optional<MeshStep> mesh_step(const Partitioned& partitioned, const Bindings& given, const PlanStep& plan,
                                  const ProcessBytes& process_bytes, const Device* device, std::span<const double> collective_s) {
  const auto made = localize(partitioned);
  const auto* local = std::get_if<Localized>(&made);
  if (!local) return std::nullopt;
  const Bindings dims = local->graph.dims.bind(given).values;
  const DeviceProgram program = device_program(local->graph, results_of(*local));
  MeshStep result;
  result.process = process_bytes ? process_bytes(*local, dims) : 0;
  const auto working = [](const FormedView& formed, const BesidePlan& besides) {
    return formed.plan.own_bytes + besides.bytes + besides.shared;
  };
  const PlannedStep step = plan(program.graph, given, RunMode::inference, [&](const FormedView& formed, const BesidePlan& besides) {
    return result.process + plan_device(*local, program, dims, formed, besides.places).values.bytes + working(formed, besides);
  });
  const DevicePlan planned = plan_device(*local, program, dims, step.formed->view(), step.besides.places);
  result.values = planned.values.bytes;
  result.working = working(step.formed->view(), step.besides);
  result.executed = executed_work(step.formed->list).flops;
  for (const NodeId id : step.formed->recomputation.values) result.recomputed.push_back(launch_label(program.graph[id]));
  if (!device || collective_s.size() != local->collectives.size()) return result;
  if (const auto before = seconds_before(step, *device)) result.line = timeline(*local, planned, *before, collective_s);
  return result;
}

}  // namespace einc
