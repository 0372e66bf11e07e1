// SPDX-License-Identifier: Apache-2.0
// Whether a mesh axis splits rows and keys is read off a first partition: most programs need no other.
#include "compiler/context/partition_for_mesh.h"

#include <algorithm>
#include <optional>
#include <set>
#include <utility>

#include "compiler/context/ring_attention.h"
#include "compiler/context/split_attention.h"
#include "compiler/context/zigzag_attention.h"
#include "compiler/fuse/row_statistics.h"

namespace einc {
namespace {

constexpr MeshPass kPasses[] = {
    {"zigzag_attention", "causal attention: the sequence in an order in which all devices' rows see as many keys",
     "before layouts are chosen: it says in which order an axis is cut"},
    {"ring_attention", "attention whose keys stay in parts, in as many steps as there are parts, each with the keys that a device then has",
     "before layouts are chosen: it says which axes lie along the mesh; behind zigzag_attention, in whose order parts are cut"},
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
  std::optional<ZigzagGraph> zigzag = zigzag_attention(graph, found, std::vector<bool>(found.size()), given);
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

// Of nodes that are at `at` now.
PartitionHints moved(const PartitionHints& hints, const std::vector<NodeId>& at) {
  PartitionHints out;
  for (const auto& [node, labels] : hints.yielding)
    if (at[node].valid()) out.yielding.emplace(at[node].index, labels);
  for (const auto& [node, layout] : hints.wishes)
    if (at[node.index].valid()) out.wishes.emplace_back(at[node.index], layout);
  for (const auto& [node, axes] : hints.zigzag)
    if (at[node].valid()) out.zigzag.emplace(at[node].index, axes);
  for (const auto& [node, mesh_axis] : hints.waiting)
    if (at[node.index].valid()) out.waiting.emplace_back(at[node.index], mesh_axis);
  return out;
}

// With layouts by the nodes of the graph given.
std::optional<Partitioned> ring_in(const Graph& graph, const std::vector<SplitAttention>& found, RingOrder order,
                                   const PartitionHints& known, const Bindings& given) {
  const RingGraph ring = ring_attention(graph, found, order, given);
  PartitionHints hints = moved(known, ring.at);
  Result first = partition(ring.graph, given, hints);
  if (!std::holds_alternative<Partitioned>(first)) return std::nullopt;
  // Others keep their rows in place.
  if (const auto others = split_attention(ring.graph, std::get<Partitioned>(first), given); !others.empty()) {
    add_hints(hints, rows_in_place(ring.graph, others));
    first = partition(ring.graph, given, hints);
  }
  auto* made = std::get_if<Partitioned>(&first);
  if (made == nullptr) return std::nullopt;
  read_back(made->layouts, ring.at);
  return std::move(*made);
}

// Of the attentions marked; `at`: where nodes are now, or none.
std::set<NodeId> scores_of(const std::vector<SplitAttention>& found, const std::vector<bool>& marked, const std::vector<NodeId>& at) {
  std::set<NodeId> scores;
  for (size_t i = 0; i < found.size(); ++i)
    if (marked[i]) scores.insert(at.empty() ? found[i].attention.scores : at[found[i].attention.scores.index]);
  return scores;
}

// The same where some attention is causal. What goes round must be found again in zigzag order: only a ring knows its numbers there.
std::optional<Partitioned> ring_in_zigzag(const Graph& graph, const std::vector<SplitAttention>& found, const Bindings& given) {
  const std::vector<bool> round = go_round(graph, found, given);
  std::optional<ZigzagGraph> zigzag = zigzag_attention(graph, found, round, given);
  if (!zigzag) return std::nullopt;
  const Result laid = partition(zigzag->graph, given, zigzag->hints);
  if (!std::holds_alternative<Partitioned>(laid)) return std::nullopt;
  const std::vector<SplitAttention> there = split_attention(zigzag->graph, std::get<Partitioned>(laid), given);
  if (scores_of(there, go_round(zigzag->graph, there, given), {}) != scores_of(found, round, zigzag->at)) return std::nullopt;
  auto made = ring_in(zigzag->graph, there, RingOrder::zigzag, zigzag->hints, given);
  if (!made) return std::nullopt;
  read_back(made->layouts, zigzag->at);
  made->zigzag = std::move(zigzag->order);
  return made;
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
  std::optional<Partitioned> made = ring_in_zigzag(by_rows, found, given);
  if (!made) {
    made = ring_in(by_rows, found, RingOrder::program, {}, given);
    if (made) made->zigzag.assign(by_rows.size(), {});
  }
  if (!made || !kept.graph) return made ? std::optional<Result>(std::move(*made)) : std::nullopt;
  read_back(made->layouts, kept.at);
  std::vector<ZigzagAxes> order;
  for (const NodeId id : kept.at) order.push_back(id.valid() ? made->zigzag[id.index] : ZigzagAxes());
  made->zigzag = std::move(order);
  return std::move(*made);
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
