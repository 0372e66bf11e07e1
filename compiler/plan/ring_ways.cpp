// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/ring_ways.h"

#include <algorithm>
#include <utility>

#include "compiler/context/partition_for_mesh.h"

namespace einc {
namespace {

// Devices of a sequence in a pipeline: each is a step of its own in every layer of the sample, which has most of them there. Rings of 64
// made the plan of Llama 405B on 16,384 devices take 9.4 s in place of 5.7, and were not the better ways.
constexpr int64_t kMostInStages = 16;

bool is_better(const ScheduledWay& ring, const ScheduledWay& gathered) {
  if (ring.fits != gathered.fits) return ring.fits;
  const std::pair mine(ring.fits ? ring.seconds.total() : 0, ring.held.total());
  return mine < std::pair(gathered.fits ? gathered.seconds.total() : 0, gathered.held.total());
}

}  // namespace

std::vector<std::optional<ScheduledWay>> RingWays::schedule(WaySchedulers& schedulers, std::vector<MeshWay> ways) {
  const size_t count = ways.size();
  std::vector<std::pair<size_t, size_t>> rings;  // a way, and the same in a ring
  for (size_t i = 0; i < count; ++i)
    if (auto ring = in_a_ring(ways[i])) rings.emplace_back(i, ways.size()), ways.push_back(std::move(*ring));
  std::vector<std::optional<ScheduledWay>> scheduled = schedulers.schedule(ways);
  for (const auto& [of, at] : rings) {
    std::optional<ScheduledWay>&gathered = scheduled[of], &ring = scheduled[at];
    if (!ring || (gathered && !is_better(*ring, *gathered))) continue;
    if (gathered && gathered->fits) ring->gathered = {gathered->seconds.total(), gathered->held.total()};
    gathered = std::move(ring);
  }
  scheduled.resize(count);
  return scheduled;
}

// Where an axis splits the data, and not the batch; nothing where no attention of it goes round.
std::optional<MeshWay> RingWays::in_a_ring(const MeshWay& way) {
  if (!asked_) return std::nullopt;
  MeshWay ring = way;
  for (WayAxis& axis : ring.axes) {
    const bool of_sequence = axis.spreads && std::ranges::find(axis.split, programs_.batch()) == axis.split.end();
    axis.keys = of_sequence && (!way.stages || axis.size <= kMostInStages);
  }
  if (ring == way) return std::nullopt;
  const auto made = partition_for_mesh(programs_.graph(Micro::whole, 0, ring), programs_.dims(0, ring));
  const auto* parts = std::get_if<Partitioned>(&made);
  const bool goes_round = parts && std::ranges::any_of(parts->graph.nodes, [](const Node& node) { return node.op == Op::shift; });
  return goes_round ? std::optional(std::move(ring)) : std::nullopt;
}

}  // namespace einc
