// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/mesh_step.h"

#include <unordered_map>

#include "compiler/partition/localize.h"
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

}  // namespace

std::optional<DeviceTimeline> mesh_step(const Partitioned& partitioned, const Bindings& given, const PlanStep& plan, const Device& device,
                                        std::span<const double> collective_s) {
  const auto made = localize(partitioned);
  const auto* local = std::get_if<Localized>(&made);
  if (!local) return std::nullopt;
  const DeviceProgram program = device_program(local->graph, results_of(*local));
  const PlannedStep step = plan(program.graph, given, RunMode::inference);
  const auto before = seconds_before(step, device);
  if (!before) return std::nullopt;
  const DeviceSchedule schedule = schedule_device(local->graph, program, planned_device(program, *step.formed));
  std::unordered_map<uint32_t, size_t> place;  // in collective_s, by node
  for (size_t i = 0; i < local->collectives.size(); ++i) place.emplace(local->collectives[i].index, i);
  std::vector<double> seconds;
  for (const NodeId id : schedule.collectives) seconds.push_back(collective_s[place.at(id.index)]);
  DeviceTimeline line = device_timeline(
      schedule.steps, [&](const DeviceStep& s) { return (*before)[s.last] - (*before)[s.first]; }, seconds);
  std::vector<double> exposed(collective_s.size(), 0);
  for (size_t n = 0; n < schedule.collectives.size(); ++n) exposed[place.at(schedule.collectives[n].index)] = line.exposed_s[n];
  line.exposed_s = std::move(exposed);
  return line;
}

}  // namespace einc
