// SPDX-License-Identifier: Apache-2.0
// Values by the moment they are first needed, each at the best fit of what has been freed by then: the same arena as a buffer plan's.
#include "compiler/api/mesh_memory.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/lower/arena.h"

namespace einc {
namespace {

// By steps, both included: a value is needed from the first that writes it, or starts the collective that does, to the last that reads it,
// or waits for the collective that does.
constexpr int64_t kBefore = -1;  // sources, coordinates and copies of sources are there before the first step
struct Lifetime {
  int64_t first = INT64_MAX, last = kBefore;
};

std::vector<Lifetime> lifetimes(const MeshPlan& plan) {
  const auto end = static_cast<int64_t>(plan.steps.size());
  std::vector<Lifetime> lives(plan.values.size());
  const auto need = [&](uint32_t value, int64_t step) {
    lives[value].first = std::min(lives[value].first, step);
    lives[value].last = std::max(lives[value].last, step);
  };
  std::unordered_map<uint32_t, uint32_t> value_of;  // by buffer
  for (const BoundValue& bound : plan.code.bound) value_of.emplace(bound.buffer, bound.value);
  const std::vector<Launch>& launches = plan.code.compute.program.launches;
  for (int64_t t = 0; t < end; ++t) {
    const DeviceStep& step = plan.steps[static_cast<size_t>(t)];
    if (step.act != DeviceAct::compute) {
      need(plan.collectives[step.index].from, t);
      need(plan.collectives[step.index].to, t);
      continue;
    }
    for (uint32_t l = 0; l < launches.size(); ++l)
      for (size_t b = 0; may_run(plan.code, step, l) && b < launches[l].buffers.size(); ++b)
        if (const auto at = value_of.find(launches[l].buffers[b]); at != value_of.end()) need(at->second, t);
  }
  const auto give = [&](uint32_t value) { need(value, kBefore); };
  for (const MeshSource& source : plan.sources) give(source.value);
  for (const Coordinate& coordinate : plan.coordinates) give(coordinate.value);
  for (const ValueCopy& copy : plan.snapshots) give(copy.to);
  const auto keep = [&](uint32_t value) { need(value, end); };
  for (const MeshSource& source : plan.sources) keep(source.value);
  for (const Coordinate& coordinate : plan.coordinates) keep(coordinate.value);
  for (const ValueCopy& copy : plan.snapshots) keep(copy.to);
  for (const MeshResult& output : plan.outputs) keep(output.value);
  for (const auto& [path, gradient] : plan.gradients) keep(gradient.value);
  for (const MeshUpdate& update : plan.updates) keep(update.value);
  if (plan.loss >= 0) keep(static_cast<uint32_t>(plan.loss));
  return lives;
}

}  // namespace

void place_values(MeshPlan& plan) {
  constexpr int64_t kLine = 64;
  const std::vector<Lifetime> lives = lifetimes(plan);
  std::vector<uint32_t> by_start, by_end;
  for (uint32_t v = 0; v < plan.values.size(); ++v) by_start.push_back(v), by_end.push_back(v);
  std::ranges::stable_sort(by_start, {}, [&](uint32_t v) { return lives[v].first; });
  std::ranges::stable_sort(by_end, {}, [&](uint32_t v) { return lives[v].last; });
  Arena arena;
  const auto room = [&](uint32_t v) { return std::max<int64_t>(kLine, (plan.values[v].bytes + kLine - 1) / kLine * kLine); };
  size_t ended = 0;
  for (const uint32_t v : by_start) {
    for (; lives[by_end[ended]].last < lives[v].first; ++ended) arena.release(plan.values[by_end[ended]].offset, room(by_end[ended]));
    plan.values[v].offset = arena.allocate(room(v));
  }
  plan.bytes = arena.size();
}

}  // namespace einc
