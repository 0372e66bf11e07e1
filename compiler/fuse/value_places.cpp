// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/value_places.h"

#include <algorithm>

#include "compiler/fuse/drawn_parts.h"
#include "compiler/fuse/kernel_cache.h"
#include "compiler/fuse/ordered_kernels.h"

namespace einc {
namespace {

constexpr int64_t kTimesToStore = 4, kLargestTable = int64_t{1} << 22;  // elements

}  // namespace

ValuePlaces::ValuePlaces(const BoundGraph& graph, const std::vector<NodeId>& roots)
    : graph_(graph),
      is_root_(graph.graph.size(), false),
      tables_(graph.graph.size(), false),
      free_(graph.graph.size(), false),
      made_where_read_(graph.graph.size(), false),
      in_memory_(graph.graph.size(), false) {
  for (NodeId id : roots) is_root_[id.index] = true;
  for (NodeId id : graph.read_whole()) is_root_[id.index] = true;
  taken_in_parts_ = find_taken_in_parts(graph, is_root_);
  find_scattered();
  find_free();
  find_readers();
  for (uint32_t i = 0; i < graph_.graph.size(); ++i)
    in_memory_[i] = is_computed(NodeId{i}) && kind_of(graph_.graph.nodes[i].op) != OpKind::view && !free_[i] && !made_where_read_[i];
}

// A row that is gathered for a sum by index alone, as a message is that goes along an edge: the sum takes each element once, so that it
// need not lie in memory, from which threads that divide other loops than those that made it would fetch it out of one another's caches.
// Sums of single numbers go over all positions in order, on one thread: what they gather is made beside them, by all.
void ValuePlaces::find_scattered() {
  scattered_.assign(graph_.graph.size(), false);
  std::vector<bool> seen(graph_.graph.size(), false);
  for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
    if (!graph_.live[i]) continue;
    const Node& node = graph_.graph.nodes[i];
    const bool sums = (node.op == Op::scatter_add || node.op == Op::scatter_max || node.op == Op::scatter_min) &&
                      is_ordered(graph_, NodeId{i}) && node.type.rank() > 1;
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const NodeId x = node.operands[k];
      const bool alone = !seen[x.index] && !is_root_[x.index] && graph_.is_late(x) == graph_.is_late(NodeId{i}) &&
                         graph_.is_pulled(x) == graph_.is_pulled(NodeId{i});
      scattered_[x.index] = sums && k == 0 && alone && graph_[x].op == Op::gather;
      seen[x.index] = true;
    }
  }
}

void ValuePlaces::find_free() {
  find_free_but_tables();
  find_tables();
  find_free_but_tables();
}

void ValuePlaces::find_free_but_tables() {
  for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
    const Node& node = graph_.graph.nodes[i];
    if (!graph_.live[i]) continue;
    const bool simple =
        node.op == Op::constant || node.op == Op::iota || node.op == Op::map || node.op == Op::cast || kind_of(node.op) == OpKind::view;
    free_[i] = simple && !tables_[i] && std::all_of(node.operands.begin(), node.operands.end(), [&](NodeId x) { return free_[x.index]; });
    const bool asked =
        (!graph_.where_read.empty() && graph_.where_read[i]) || is_dry_element(NodeId{i}) || taken_in_parts_[i] || scattered_[i];
    made_where_read_[i] = !free_[i] && (asked || is_cheap(NodeId{i}));
  }
}

// Functions of loop indices, such as the sines of positions, that would be computed anew for many an element: made once.
void ValuePlaces::find_tables() {
  std::vector<int64_t> times(graph_.graph.size(), 0);  // that a free value would be made in one of the kernels that read it
  for (uint32_t i = graph_.graph.size(); i-- > 0;) {
    const Node& node = graph_.graph.nodes[i];
    if (!graph_.live[i]) continue;
    const int64_t own = graph_.count(NodeId{i});
    const bool dear = node.op == Op::map && is_transcendental(node.as<MapAttr>().fn);
    tables_[i] = free_[i] && dear && own > 1 && own <= kLargestTable && times[i] >= kTimesToStore * own;
    const int64_t made = free_[i] && !tables_[i] ? times[i] : own;
    for (NodeId x : node.operands) times[x.index] = std::max(times[x.index], made);
  }
}

// What an update's check alone makes of a param's elements, of which the check keeps the least and the largest.
bool ValuePlaces::is_dry_element(NodeId id) const {
  const Op op = graph_[id].op;
  return graph_.guard.is_dry(id) && (op == Op::map || op == Op::cast) && graph_[id].type.rank() > 0;
}

// A little arithmetic on free values and single numbers, or a free value at such a number: where it is read, that reads no array, as the
// mask of a cache that is filled to a position would be, or the positions that a device's coordinate gives.
bool ValuePlaces::is_cheap(NodeId id) const {
  const Node& node = graph_[id];
  const bool arithmetic = node.op == Op::cast || (node.op == Op::map && !is_transcendental(node.as<MapAttr>().fn));
  const bool picks = node.op == Op::gather && free_[below_views(node.operands[0]).index] && graph_.count(node.operands[1]) == 1;
  if (!(arithmetic || picks) || graph_.count(id) == 1) return false;
  return std::all_of(node.operands.begin(), node.operands.end(), [&](NodeId x) {
    x = below_views(x);
    return free_[x.index] || made_where_read_[x.index] || graph_.count(x) == 1;
  });
}

void ValuePlaces::find_readers() {
  std::vector<std::pair<NodeId, NodeId>> reads;
  reads.reserve(2 * graph_.graph.size());
  for (uint32_t i = 0; i < graph_.graph.size(); ++i)
    if (is_computed(NodeId{i})) for_each_read(NodeId{i}, [&](NodeId x) { reads.emplace_back(x, NodeId{i}); });
  readers_ = ReaderLists(graph_.graph.size(), reads);
}

AttentionGroups ValuePlaces::find_attention() { return group_attention(graph_, is_root_, free_, readers_, in_memory_); }

void ValuePlaces::find_recomputed(const std::vector<GraphKernel>& attentions, const RecomputeLimits& limits, const KernelTarget& target,
                                  BuiltKernels& built) {
  std::vector<bool> stored = is_root_, taken(graph_.graph.size(), false);
  for (const GraphKernel& a : attentions)
    for (NodeId id : a.group.members) {
      stored[id.index] = taken[id.index] = true;
      for_each_read(id, [&](NodeId x) { stored[x.index] = true; });
    }
  const std::vector<bool> found = einc::find_recomputed(graph_, stored, free_, readers_, limits);
  for (size_t i = 0; i < found.size(); ++i) made_where_read_[i] = made_where_read_[i] || found[i];
  while (store_what_fails(taken, target, built)) {
  }
  find_readers();
}

// Whether a node could not be a kernel with what it reads computed in it: that is stored after all. What attention has taken is built so.
bool ValuePlaces::store_what_fails(const std::vector<bool>& taken, const KernelTarget& target, BuiltKernels& built) {
  for (uint32_t i = 0; i < graph_.graph.size(); ++i)
    if (made_where_read_[i]) in_memory_[i] = false;
  KernelCache trial(graph_, in_memory_, target, built);
  bool any = false;
  for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
    std::vector<NodeId> made = is_computed(NodeId{i}) && !taken[i] ? recomputed_operands(NodeId{i}) : std::vector<NodeId>{};
    if (made.empty() || trial.builds({{NodeId{i}}, {NodeId{i}}})) continue;
    any = true;
    for (; !made.empty(); made.pop_back()) made_where_read_[made.back().index] = false, in_memory_[made.back().index] = true;
  }
  return any;
}

std::vector<NodeId> ValuePlaces::recomputed_operands(NodeId id) const {
  std::vector<NodeId> found;
  for (NodeId x : graph_[id].operands)
    if (x = below_views(x); made_where_read_[x.index]) found.push_back(x);
  return found;
}

}  // namespace einc
