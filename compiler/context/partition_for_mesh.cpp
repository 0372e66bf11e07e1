// SPDX-License-Identifier: Apache-2.0
// Whether a mesh axis splits rows and keys is read off a first partition: most programs need no other.
#include "compiler/context/partition_for_mesh.h"

#include <algorithm>
#include <optional>
#include <utility>

#include "compiler/context/ring_attention.h"
#include "compiler/context/split_attention.h"
#include "compiler/context/zigzag_attention.h"
#include "compiler/fuse/row_statistics.h"

namespace einc {
namespace {

constexpr MeshPass kPasses[] = {
    {"ring_attention", "attention whose keys stay in parts, in as many steps as there are parts, each with the keys that a device then has",
     "before layouts are chosen: it says which axes lie along the mesh"},
    {"zigzag_attention", "causal attention of gathered keys: the sequence in an order in which all devices' rows see as many keys",
     "before layouts are chosen: it says in which order an axis is cut"},
    {"partition", "a mesh axis becomes an axis of the graph; rows of attention stay where they are",
     "the graph is final: casts are nodes, forward, backward and optimizer are there"},
    {"localize", "the graph of one device, with collectives where mesh axes are crossed", "last: it takes the mesh axes away"},
};

using Result = std::variant<Partitioned, NoPartition>;

// Layouts by the nodes of the graph that was given, which are at `at` in the one that was partitioned.
void read_back(std::vector<Layout>& layouts, const std::vector<NodeId>& at) {
  std::vector<Layout> out;
  for (const NodeId id : at) out.push_back(id.valid() ? layouts[id.index] : Layout());
  layouts = std::move(out);
}

// What the second hints know is added to the first.
void add_hints(PartitionHints& hints, PartitionHints more) {
  hints.yielding.merge(more.yielding);
  hints.wishes.insert(hints.wishes.end(), more.wishes.begin(), more.wishes.end());
}

// Nothing where no attention is causal, and where what is made of it has no partition.
std::optional<Result> in_zigzag(const Graph& graph, const std::vector<SplitAttention>& found, const Bindings& given) {
  std::optional<ZigzagGraph> zigzag = zigzag_attention(graph, found, given);
  if (!zigzag) return std::nullopt;
  Result first = partition(zigzag->graph, given, zigzag->hints);
  if (!std::holds_alternative<Partitioned>(first)) return std::nullopt;
  // Others keep their rows in place.
  if (const auto others = split_attention(zigzag->graph, std::get<Partitioned>(first), given); !others.empty()) {
    add_hints(zigzag->hints, rows_in_place(zigzag->graph, others));
    first = partition(zigzag->graph, given, zigzag->hints);
  }
  auto* made = std::get_if<Partitioned>(&first);
  if (made == nullptr) return std::nullopt;
  read_back(made->layouts, zigzag->at);
  made->zigzag = std::move(zigzag->order);
  return first;
}

// Nothing where no attention goes round, and where what is made of it has no partition.
std::optional<Result> in_a_ring(const Graph& graph, std::vector<SplitAttention> found, const Bindings& given) {
  if (std::ranges::none_of(found, [&](const SplitAttention& s) { return graph.mesh.keys.contains(s.mesh_axis); })) return std::nullopt;
  std::vector<FoundAttention> attentions;
  for (const SplitAttention& split : found)
    if (graph.mesh.keys.contains(split.mesh_axis)) attentions.push_back(split.attention);
  const RowStatistics kept = use_row_statistics(bound_by_roots(graph, given), attentions);
  const Graph& by_rows = kept.graph ? *kept.graph : graph;
  if (kept.graph) {
    const Result again = partition(by_rows, given);
    if (!std::holds_alternative<Partitioned>(again)) return std::nullopt;
    found = split_attention(by_rows, std::get<Partitioned>(again), given);
  }
  const RingGraph ring = ring_attention(by_rows, found, given);
  Result first = partition(ring.graph, given);
  if (!std::holds_alternative<Partitioned>(first)) return std::nullopt;
  // Others keep their rows in place.
  if (const auto others = split_attention(ring.graph, std::get<Partitioned>(first), given); !others.empty())
    first = partition(ring.graph, given, rows_in_place(ring.graph, others));
  auto* made = std::get_if<Partitioned>(&first);
  if (made == nullptr) return std::nullopt;
  read_back(made->layouts, ring.at);
  if (kept.graph) read_back(made->layouts, kept.at);
  made->zigzag.assign(graph.size(), {});
  return first;
}

}  // namespace

std::span<const MeshPass> mesh_passes() { return kPasses; }

Result partition_for_mesh(const Graph& graph, const Bindings& given) {
  auto first = partition(graph, given);
  const auto* partitioned = std::get_if<Partitioned>(&first);
  if (partitioned == nullptr) return first;
  const std::vector<SplitAttention> found = split_attention(graph, *partitioned, given);
  if (found.empty()) return first;
  if (auto ring = in_a_ring(graph, found, given)) return std::move(*ring);
  if (auto zigzag = in_zigzag(graph, found, given)) return std::move(*zigzag);
  return partition(graph, given, rows_in_place(graph, found));
}

}  // namespace einc
