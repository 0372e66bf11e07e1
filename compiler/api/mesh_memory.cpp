// SPDX-License-Identifier: Apache-2.0
// Values by the moment they are first needed, each at the best fit of what has been freed by then: the same arena as a buffer plan's.
#include "compiler/api/mesh_memory.h"

#include <algorithm>

#include "compiler/lower/arena.h"

namespace einc {
namespace {

// A value is needed from the moment it is made to the last at which it is read, both included: stage s computes at 2s, and its collectives
// are carried out at 2s + 1, all of them at once as far as memory is concerned.
struct Lifetime {
  int64_t first = -1, last = -1;  // -1: sources, coordinates and copies of sources are there before the first stage
};

std::vector<Lifetime> lifetimes(const MeshPlan& plan) {
  const auto end = static_cast<int64_t>(2 * plan.stages.size());
  std::vector<Lifetime> lives(plan.values.size());
  for (int64_t s = 0; s < static_cast<int64_t>(plan.stages.size()); ++s) {
    const MeshStage& stage = plan.stages[static_cast<size_t>(s)];
    for (const StageValue& read : stage.reads) lives[read.value].last = 2 * s;
    for (const StageValue& made : stage.makes) lives[made.value] = {2 * s, 2 * s};
    for (const MeshCollective& c : stage.collectives) {
      lives[c.from].last = 2 * s + 1;
      lives[c.to] = {2 * s + 1, 2 * s + 1};
    }
  }
  const auto keep = [&](uint32_t value) { lives[value].last = end; };
  for (const MeshSource& source : plan.sources) keep(source.value);
  for (const StageValue& coordinate : plan.coordinates) keep(coordinate.value);
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
