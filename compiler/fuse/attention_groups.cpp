// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/attention_groups.h"

#include <algorithm>
#include <bit>
#include <optional>
#include <unordered_map>

#include "compiler/fuse/signature.h"
#include "compiler/fuse/softmax_attention.h"

namespace einc {
namespace {

class Grouper {
 public:
  Grouper(const BoundGraph& graph, const std::vector<bool>& roots, const ReaderLists& readers, std::vector<bool>& in_memory)
      : graph_(graph), roots_(roots), readers_(readers), in_memory_(in_memory), signer_(graph, in_memory, classes_) {}

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
    if (!found.is_lone_backward()) {
      AttentionBuild forward = build(found, found.forward, stored(found, found.forward, loaded), ReadValues::of_forward);
      if (!forward.built) return forward.refusal;
      kernels.push_back(std::move(*forward.built));
    }
    if (backward) kernels.push_back(std::move(*backward));
    return {};
  }

  // Its scores are made of the forward's nodes again. Under a memory limit their operands may be made again, too, for its other products:
  // all of them read those then, so that it is the same kernel and the forward's operands are held no longer. It runs behind what its
  // own nodes read, so that it may read no copy that only other kernels do; those operands stay.
  AttentionBuild build_backward(const FoundAttention& found) {
    const std::vector<NodeId> results = stored(found, found.backward, {});
    AttentionBuild built = build(found, found.backward, results, ReadValues::made_again);
    if (built.built && std::ranges::all_of(built.built->buffers, [&](NodeId id) { return !is_copy(id) || is_read(id, found.backward); }))
      return built;
    return graph_.again.empty() ? std::move(built) : build(found, found.backward, results, ReadValues::of_forward);
  }

  // The attention of equal layers is built once. Copies of values are told apart by the graph alone: with them each is built.
  AttentionBuild build(const FoundAttention& found, const AttentionNodes& nodes, const std::vector<NodeId>& results, ReadValues read) {
    if (!graph_.again.empty()) return build_attention(graph_, found, nodes, results, in_memory_, read);
    const Group group{nodes.members, results};
    sign(found, nodes, group);
    const auto [at, fresh] = built_.try_emplace(signer_.signature());
    Built& known = at->second;
    if (fresh) {
      AttentionBuild made = build_attention(graph_, found, nodes, results, in_memory_, read);
      known.refusal = made.refusal;
      if (!made.built) return made;
      known.kernel = made.built->kernel;
      known.buffers = signer_.numbers_of(made.built->buffers, group);
      known.streams = signer_.numbers_of(made.built->streams, group);
      known.sites = signer_.numbers_of(made.built->sites, group);
      return made;
    }
    if (!known.kernel) return {std::nullopt, known.refusal};
    const auto nodes_of = [&](const std::vector<uint32_t>& numbers) { return signer_.nodes_of(numbers, group); };
    return {GraphKernel{known.kernel, nodes_of(known.buffers), nodes_of(known.streams), nodes_of(known.sites), {}, group}, {}};
  }

  // All that build_attention looks at.
  void sign(const FoundAttention& found, const AttentionNodes& nodes, const Group& group) {
    const size_t length = signer_.sign(group).size();
    const auto add_axes = [&](NodeId id) {
      const auto axes = found.axes.find(id.index);
      signer_.add(axes == found.axes.end() ? 0 : static_cast<uint32_t>(axes->second.size() + 1));
      if (axes == found.axes.end()) return;
      for (const int axis : axes->second) signer_.add(static_cast<uint32_t>(axis));
    };
    for (const NodeId id : nodes.members) {
      add_axes(id);
      for (const NodeId x : graph_[id].operands) add_axes(x);
    }
    signer_.add(static_cast<uint32_t>(nodes.results.size()));
    for (const NodeId id : nodes.results) signer_.add_place(id, group);
    signer_.add_place(found.scores, group);
    for (const int64_t extent : graph_.shape(found.scores)) add_wide(static_cast<uint64_t>(extent));
    signer_.add(static_cast<uint32_t>(found.key));
    signer_.add(found.backward.members.empty() ? 0 : &nodes == &found.forward ? 1 : found.is_lone_backward() ? 2 : 3);
    signer_.add(!found.softmax ? 0 : found.softmax->backward ? 2 : 1);
    if (found.softmax) sign(*found.softmax, group);
    signer_.add(static_cast<uint32_t>(length));  // says where the group's own part ends
  }
  void sign(const SoftmaxNodes& softmax, const Group& group) {
    add_wide(std::bit_cast<uint64_t>(softmax.scale));
    signer_.add(static_cast<uint32_t>(softmax.causal_row.value_or(-1)));
    const SoftmaxNodes::Backward b = softmax.backward.value_or(SoftmaxNodes::Backward{});
    for (const NodeId id : {softmax.output, softmax.log_sum, b.weight_gradient, b.delta, b.d_queries, b.d_keys, b.d_values})
      signer_.add_place(id, group);
  }
  void add_wide(uint64_t number) {
    signer_.add(static_cast<uint32_t>(number));
    signer_.add(static_cast<uint32_t>(number >> 32));
  }

  bool is_copy(NodeId id) const { return graph_.given_of(id) != id; }
  bool is_read(NodeId id, const AttentionNodes& nodes) const {
    return std::ranges::any_of(readers_[id], [&](NodeId r) { return std::ranges::binary_search(nodes.members, r); });
  }

  // Results, and values per row that others read.
  std::vector<NodeId> stored(const FoundAttention& found, const AttentionNodes& nodes, const std::vector<NodeId>& loaded) const {
    const auto among = [](const std::vector<NodeId>& sorted, NodeId id) { return std::binary_search(sorted.begin(), sorted.end(), id); };
    std::vector<NodeId> all;
    for (NodeId id : nodes.members) {
      if (among(found.pairs, id)) continue;
      const std::span<const NodeId> readers = readers_[id];
      const bool read = std::any_of(readers.begin(), readers.end(), [&](NodeId r) { return !among(nodes.members, r); });
      if (roots_[id.index] || read || std::find(loaded.begin(), loaded.end(), id) != loaded.end()) all.push_back(id);
    }
    return all;
  }

  const BoundGraph& graph_;
  const std::vector<bool>& roots_;
  const ReaderLists& readers_;
  std::vector<bool>& in_memory_;
  NodeClasses classes_;
  Signer signer_;
  struct Built {
    std::string refusal;
    std::shared_ptr<const Kernel> kernel;
    std::vector<uint32_t> buffers, streams, sites;  // nodes as the signer's numbers
  };
  std::unordered_map<Signature, Built, SignatureHash> built_;
};

}  // namespace

AttentionGroups group_attention(const BoundGraph& graph, const std::vector<bool>& roots, const std::vector<bool>& free,
                                const ReaderLists& readers, std::vector<bool>& in_memory) {
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
      groups.refusals.push_back({found.scores, (found.is_lone_backward() ? found.backward : found.forward).results.front(), refusal});
  }
  std::unordered_map<const Kernel*, std::shared_ptr<const Kernel>> kept;  // one of those of equal text
  for (GraphKernel& k : groups.kernels) {
    const auto [at, fresh] = kept.try_emplace(k.kernel.get());
    if (fresh) at->second = known.try_emplace(to_string(*k.kernel), k.kernel).first->second;
    k.kernel = at->second;
  }
  return groups;
}

}  // namespace einc
