// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/attention_groups.h"

#include <algorithm>
#include <optional>
#include <unordered_map>

#include "compiler/fuse/softmax_attention.h"

namespace einc {
namespace {

class Grouper {
 public:
  Grouper(const BoundGraph& graph, const std::vector<bool>& roots, const std::vector<std::vector<NodeId>>& readers,
          std::vector<bool>& in_memory)
      : graph_(graph), roots_(roots), readers_(readers), in_memory_(in_memory) {}

  // Appends the kernels of `found`, all or none; says why none.
  std::string run(const FoundAttention& found, std::vector<GraphKernel>& kernels) {
    for (NodeId id : found.pairs) in_memory_[id.index] = false;
    const std::string refusal = build(found, kernels);
    if (!refusal.empty())
      for (NodeId id : found.pairs) in_memory_[id.index] = true;
    return refusal;
  }

 private:
  std::string build(const FoundAttention& found, std::vector<GraphKernel>& kernels) {
    std::vector<NodeId> loaded;  // by the backward, of what the forward makes
    std::optional<GraphKernel> backward;
    if (!found.backward.members.empty()) {
      if (found.backward.results.empty()) return "its backward ends in no contraction";
      AttentionBuild built = build_backward(found);
      if (!built.built) return "in the backward, " + built.refusal;
      backward = std::move(built.built);
      loaded = backward->buffers;
    }
    AttentionBuild forward =
        build_attention(graph_, found, found.forward, stored(found, found.forward, loaded), in_memory_, ReadValues::of_forward);
    if (!forward.built) return forward.refusal;
    kernels.push_back(std::move(*forward.built));
    if (backward) kernels.push_back(std::move(*backward));
    return {};
  }

  // Its scores are made of the forward's nodes again. Under a memory limit their operands may be made again, too, for its other products:
  // all of them read those then, so that it is the same kernel and the forward's operands are held no longer. It runs behind what its
  // own nodes read, so that it may read no copy that only other kernels do; those operands stay.
  AttentionBuild build_backward(const FoundAttention& found) const {
    const std::vector<NodeId> results = stored(found, found.backward, {});
    AttentionBuild built = build_attention(graph_, found, found.backward, results, in_memory_, ReadValues::made_again);
    if (built.built && std::ranges::all_of(built.built->buffers, [&](NodeId id) { return !is_copy(id) || is_read(id, found.backward); }))
      return built;
    return graph_.again.empty() ? std::move(built)
                                : build_attention(graph_, found, found.backward, results, in_memory_, ReadValues::of_forward);
  }
  bool is_copy(NodeId id) const { return graph_.given_of(id) != id; }
  bool is_read(NodeId id, const AttentionNodes& nodes) const {
    return std::ranges::any_of(readers_[id.index], [&](NodeId r) { return std::ranges::binary_search(nodes.members, r); });
  }

  // Results, and values per row that others read.
  std::vector<NodeId> stored(const FoundAttention& found, const AttentionNodes& nodes, const std::vector<NodeId>& loaded) const {
    const auto among = [](const std::vector<NodeId>& sorted, NodeId id) { return std::binary_search(sorted.begin(), sorted.end(), id); };
    std::vector<NodeId> all;
    for (NodeId id : nodes.members) {
      if (among(found.pairs, id)) continue;
      const auto& readers = readers_[id.index];
      const bool read = std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return !among(nodes.members, r); });
      if (roots_[id.index] || read || std::find(loaded.begin(), loaded.end(), id) != loaded.end()) all.push_back(id);
    }
    return all;
  }

  const BoundGraph& graph_;
  const std::vector<bool>& roots_;
  const std::vector<std::vector<NodeId>>& readers_;
  std::vector<bool>& in_memory_;
};

}  // namespace

AttentionGroups group_attention(const BoundGraph& graph, const std::vector<bool>& roots, const std::vector<bool>& free,
                                const std::vector<std::vector<NodeId>>& readers, std::vector<bool>& in_memory) {
  AttentionGroups groups;
  std::unordered_map<std::string, std::shared_ptr<const Kernel>> known;
  AttentionSearch search = find_attention(graph, roots, free);
  groups.refusals = std::move(search.refusals);
  Grouper grouper(graph, roots, readers, in_memory);
  for (FoundAttention& found : search.found) {
    found.softmax = find_softmax(graph, found);
    const std::string refusal = grouper.run(found, groups.kernels);
    if (refusal.empty())
      groups.found.push_back(std::move(found));
    else
      groups.refusals.push_back({found.scores, found.forward.results.front(), refusal});
  }
  for (GraphKernel& k : groups.kernels) k.kernel = known.try_emplace(to_string(*k.kernel), k.kernel).first->second;
  return groups;
}

}  // namespace einc
