// SPDX-License-Identifier: Apache-2.0
// Values by the moment they are first needed, each at the best fit of what has been freed by then: the same arena as a buffer plan's.
#include "compiler/api/mesh_memory.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/lower/arena.h"

namespace einc {
namespace {

// By steps, both included: a value is needed from the one that makes it, or starts the collective that does, to the last that reads it, or
// waits for the collective that does.
struct Lifetime {
  int64_t first = -1, last = -1;  // -1: sources, coordinates and copies of sources are there before the first step
};

using ValueOf = std::unordered_map<uint32_t, uint32_t>;  // by buffer of a stage

// By the launches of a step, and by what it copies to another value.
std::vector<uint32_t> values_read(const MeshStage& stage, const ValueOf& value_of, const DeviceStep& step) {
  std::vector<uint32_t> values;
  const auto add = [&](uint32_t buffer) {
    if (const auto at = value_of.find(buffer); at != value_of.end()) values.push_back(at->second);
  };
  const std::vector<Launch>& launches = stage.compute.program.launches;
  for (uint32_t l = 0; l < launches.size(); ++l)
    for (size_t b = 0; may_run(stage, step, l) && b < launches[l].buffers.size(); ++b) add(launches[l].buffers[b]);
  for (const StageMake& made : stage.makes)
    if (makes(step, made)) add(made.buffer);
  return values;
}

std::vector<Lifetime> lifetimes(const MeshPlan& plan) {
  const auto end = static_cast<int64_t>(plan.steps.size());
  std::vector<Lifetime> lives(plan.values.size());
  std::vector<ValueOf> value_of(plan.stages.size());
  for (size_t s = 0; s < plan.stages.size(); ++s)
    for (const StageRead& read : plan.stages[s].reads) value_of[s].emplace(read.buffer, read.value);
  for (int64_t t = 0; t < end; ++t) {
    const DeviceStep& step = plan.steps[static_cast<size_t>(t)];
    if (step.act == DeviceAct::compute) {
      const MeshStage& stage = plan.stages[step.index];
      for (const uint32_t value : values_read(stage, value_of[step.index], step)) lives[value].last = t;
      for (const StageMake& made : stage.makes)
        if (makes(step, made)) lives[made.value] = {t, t};
      continue;
    }
    const MeshCollective& c = plan.collectives[step.index];
    lives[c.from].last = t;
    if (step.act == DeviceAct::start) lives[c.to].first = t;
    lives[c.to].last = t;
  }
  const auto keep = [&](uint32_t value) { lives[value].last = end; };
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
