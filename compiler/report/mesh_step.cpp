// SPDX-License-Identifier: Apache-2.0
#include "compiler/report/mesh_step.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/lower/assemble_program.h"
#include "compiler/report/schedule.h"

namespace einc {
namespace {

struct LaunchTimes {
  std::vector<double> before{0};  // seconds of all launches before each place, and of all
  PhaseSeconds phases;
};

// Nothing: a launch has no time. `backward`: the place at which it begins.
std::optional<LaunchTimes> launch_times(const PlannedStep& step, const Device& device, uint32_t backward) {
  std::vector<uint32_t> row_of;
  const std::vector<LaunchReport> rows = schedule_report(*step.formed, {&device, step.processor, {}}, row_of);
  LaunchTimes times;
  for (uint32_t l = 0; l < row_of.size(); ++l) {
    const LaunchReport* row = row_of[l] == kNoRow ? nullptr : &rows[row_of[l]];
    if (row != nullptr && !row->time_s) return std::nullopt;
    const double seconds = row == nullptr ? 0 : *row->time_s;
    times.before.push_back(times.before.back() + seconds);
    if (row == nullptr) continue;
    (l < backward ? times.phases.forward : times.phases.backward) += seconds;
  }
  return times;
}

// The launch with which the backward begins. Of a stage that waits for no other one, that of the first which is no forward's.
uint32_t first_of_backward(const DevicePlan& plan, const FormedGraph& formed) {
  const std::vector<GraphKernel>& kernels = formed.list.kernels;
  if (plan.backward < kernels.size()) return plan.backward;
  const auto first = std::ranges::find_if(
      kernels, [&](const GraphKernel& k) { return formed.bound.graph[k.group.members.front()].origin.phase != Phase::forward; });
  return static_cast<uint32_t>(first - kernels.begin());
}

DeviceTimeline timeline(const Localized& local, const DevicePlan& plan, const std::vector<double>& before,
                        std::span<const CollectiveTime> collectives) {
  std::unordered_map<uint32_t, size_t> place;  // in `collectives`, by node
  for (size_t i = 0; i < local.collectives.size(); ++i) place.emplace(local.collectives[i].index, i);
  std::vector<CollectiveTime> times;
  for (const NodeId id : plan.schedule.collectives) times.push_back(collectives[place.at(id.index)]);
  DeviceTimeline line = device_timeline(
      plan.schedule.steps, [&](const DeviceStep& s) { return before[s.last] - before[s.first]; }, times);
  for (std::vector<double>* seconds : {&line.exposed_s, &line.saved_s}) {
    std::vector<double> in_order(collectives.size(), 0);
    for (size_t n = 0; n < times.size(); ++n) in_order[place.at(plan.schedule.collectives[n].index)] = (*seconds)[n];
    *seconds = std::move(in_order);
  }
  return line;
}

}  // namespace

MeshStep device_step(const Localized& local, const Bindings& given, const PlanStep& plan, const ProcessBytes& process_bytes,
                     const DeviceProcess& process, const std::optional<HeldBesides>& held, const Device* device,
                     std::span<const CollectiveTime> collectives) {
  const Bindings dims = local.graph.dims.bind(given).values;
  const DeviceProgram program = device_program(local);
  MeshStep result;
  result.process = process_bytes ? process_bytes(local, dims, process) : 0;
  const auto working = [](const FormedView& formed, const BesidePlan& besides) {
    return formed.plan.own_bytes + besides.bytes + besides.shared;
  };
  const PlannedStep step = plan(program.graph, given, mode_of(local.stores), [&](const FormedView& formed, const BesidePlan& besides) {
    if (!held) return int64_t{0};
    const DevicePlan as_formed = plan_device(local, program, dims, formed, besides.places);
    return std::max(result.process, held->process) +
           held->with(as_formed.values.bytes, working(formed, besides), as_formed.kept_of_microbatch());
  });
  const DevicePlan planned = plan_device(local, program, dims, step.formed->view(), step.besides.places);
  result.values = planned.values.bytes;
  result.working = working(step.formed->view(), step.besides);
  result.kept_values = planned.values.kept, result.kept = planned.kept;
  result.alive = planned.values.alive, result.in_use = planned.in_use;
  result.executed = executed_work(step.formed->list).flops;
  for (const NodeId id : step.formed->recomputation.values) result.recomputed.push_back(launch_label(program.graph[id]));
  if (!device || collectives.size() != local.collectives.size()) return result;
  const auto times = launch_times(step, *device, first_of_backward(planned, *step.formed));
  if (!times) return result;
  result.line = timeline(local, planned, times->before, collectives);
  result.seconds = times->phases;
  return result;
}

MeshStep mesh_step(Localized local, const Bindings& given, const PlanStep& plan, const ProcessBytes& process_bytes, const Device* device,
                   std::span<const CollectiveTime> collectives) {
  if (!local.gradients.empty()) local.stores = DeviceUpdates::in_place;
  return device_step(local, given, plan, process_bytes, {}, HeldBesides{}, device, collectives);
}

}  // namespace einc
