// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/ring_ways.h"

#include <algorithm>
#include <tuple>
#include <utility>

#include "compiler/context/partition_for_mesh.h"

namespace einc {
namespace {

// Devices of a sequence in a pipeline: each is a step of its own in every layer of the sample, which has most of them there. Rings of 64
// made the plan of Llama 405B on 16,384 devices take 9.4 s in place of 5.7, and were not the better ways.
constexpr int64_t kMostInStages = 16;

// What does not fit has no time.
bool is_better(const ScheduledWay& ring, const ScheduledWay& gathered) {
  const auto rank = [](const ScheduledWay& way) { return std::tuple(!way.fits, way.fits ? way.seconds.total() : 0, way.held.total()); };
  return rank(ring) < rank(gathered);
}

}  // namespace

std::vector<std::optional<ScheduledWay>> RingWays::schedule(WaySchedulers& schedulers, std::vector<MeshWay> ways) {
  const size_t count = ways.size();
  std::vector<std::pair<size_t, size_t>> rings;  // a way, and the same in a ring
  for (size_t i = 0; i < count; ++i)
    if (auto ring = in_a_ring(ways[i])) rings.emplace_back(i, ways.size()), ways.push_back(std::move(*ring));
  std::vector<std::optional<ScheduledWay>> scheduled = schedulers.schedule(ways);  // both kinds at once, on all threads
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
  // A program without attention, or whose attention no ring can take apart, would be scheduled twice for nothing.
  const Graph& sample = programs_.graph(Micro::whole, 0, ring);
  const auto made = partition_for_mesh(sample, programs_.dims(0, ring));
  const auto* parts = std::get_if<Partitioned>(&made);
  const auto is_of_ring = [&](const Collective& c) { return c.kind == CollectiveKind::shift && sample.mesh.keys.contains(c.mesh_axis); };
  return parts && std::ranges::any_of(collectives_of(*parts), is_of_ring) ? std::optional(std::move(ring)) : std::nullopt;
}

}  // namespace einc
