// SPDX-License-Identifier: Apache-2.0
// Knows nothing of lifetimes: what the planner takes from the first and last launch of a value follows here from reads that find it.
// A value that several launches make, part by part, counts as made by the first; one that an alternative makes before them, from there on.
#include "compiler/lower/verify_plan.h"

#include <fmt/format.h>

#include <map>

#include "compiler/lower/memory_owners.h"
#include "compiler/lower/verify_overlap.h"

namespace einc {
namespace {

class PlanVerifier {
 public:
  PlanVerifier(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan) : graph_(graph), list_(list), plan_(plan) {
    for (const Continued& c : list.continued) base_of_[c.whole.index] = c.base;
  }

  std::string run(const std::vector<NodeId>& kept) {
    for (uint32_t i = 0; i < plan_.buffers.size(); ++i)
      if (plan_.buffers[i].place == BufferPlace::source) take(NodeId{i});
    for (const BufferPlan::Snapshot& s : plan_.snapshots) take_place(s.offset, plan_.buffers[s.source.index].bytes, snapshot(s.source));
    for (size_t k = 0; k < list_.kernels.size() && problem_.empty(); ++k) {
      for (const HeldValue& h : list_.library.held)
        if (h.from == k) take(h.value);
      launch(k);
      for (const HeldValue& h : list_.library.held)
        if (h.until == k || (h.from <= k && k <= h.until)) read(h.value, fmt::format("launch {}, which holds it,", k));
    }
    finish(kept);
    return problem_;
  }

 private:
  static constexpr MemoryOwners::Owner kParts = MemoryOwners::Owner{1} << 62, kSnapshots = MemoryOwners::Owner{1} << 61;
  static MemoryOwners::Owner snapshot(NodeId source) { return kSnapshots + source.index; }

  void fail(std::string problem) {
    if (problem_.empty()) problem_ = std::move(problem);
  }

  std::string name(MemoryOwners::Owner owner) const {
    if (owner >= kParts) return "parts of a sum";
    if (owner >= kSnapshots) return fmt::format("the snapshot of node {}", owner - kSnapshots);
    return fmt::format("node {} ({})", owner, to_string(graph_.graph.nodes[owner].op));
  }

  const BufferPlan::Buffer& place_of(NodeId id) const { return plan_.buffers[plan_.holder(id).index]; }

  void take_place(int64_t offset, int64_t bytes, MemoryOwners::Owner owner) {
    if (offset < 0 || offset + bytes > plan_.total_bytes) fail(fmt::format("{} lies outside of the mapping", name(owner)));
    memory_.take(offset, offset + bytes, owner);
  }
  void take(NodeId id) { take_place(place_of(id).offset, plan_.buffers[id.index].bytes, id.index); }

  void find(MemoryOwners::Owner owner, int64_t offset, int64_t bytes, const std::string& reader) {
    const auto other = memory_.stranger(offset, offset + bytes, owner);
    if (other)
      fail(fmt::format("{} reads {}, in whose place lies {}", reader, name(owner), other->owner ? name(*other->owner) : "nothing"));
  }
  void read(NodeId id, const std::string& reader) {
    const BufferPlan::Buffer& place = place_of(id);
    if (place.place == BufferPlace::none) return fail(fmt::format("{} reads {}, which has no place", reader, name(id.index)));
    find(id.index, place.offset, plan_.buffers[id.index].bytes, reader);
  }

  void launch(size_t number) {
    const GraphKernel& k = list_.kernels[number];
    const std::string reader = fmt::format("launch {}", number);
    std::vector<int64_t> offsets(k.kernel->buffers.size(), kNoPlace);
    for (size_t b = 0; b < k.buffers.size(); ++b)
      if (k.buffers[b].valid()) offsets[b] = place_of(k.buffers[b]).offset;
    for (const Parts& parts : k.parts) offsets[parts.buffer] = plan_.parts_offset + parts.offset;
    if (const std::string overlap = verify_overlap(*k.kernel, offsets); !overlap.empty()) fail(fmt::format("{}: {}", reader, overlap));
    for (size_t b = 0; b < k.buffers.size(); ++b)
      if (k.buffers[b].valid() && k.kernel->buffers[b].access == BufferAccess::read) read(k.buffers[b], reader);
    for (const Parts& parts : k.parts) visit(parts, k.kernel->buffers[parts.buffer], reader);
    for (size_t b = 0; b < k.buffers.size(); ++b)
      if (k.buffers[b].valid() && k.kernel->buffers[b].access != BufferAccess::read) write(k, b, reader);
  }

  void write(const GraphKernel& k, size_t b, const std::string& reader) {
    const NodeId id = k.buffers[b];
    const auto base = base_of_.find(id.index);
    // The first launch that goes on with a value finds that where it goes on.
    if (base != base_of_.end() && !made_[id.index]) {
      if (plan_.holder(base->second) != plan_.holder(id))
        fail(fmt::format("{} goes on with {} elsewhere", reader, name(base->second.index)));
      read(base->second, reader);
    }
    made_[id.index] = true;
    take(id);
  }

  // Parts of a sum belong to the place where they start.
  void visit(const Parts& parts, const BufferUse& use, const std::string& reader) {
    const int64_t offset = plan_.parts_offset + parts.offset, bytes = use.count * bytes_of(use.dtype);
    const MemoryOwners::Owner owner = kParts + static_cast<uint64_t>(parts.offset);
    if (use.access == BufferAccess::read)
      find(owner, offset, bytes, reader);
    else
      take_place(offset, bytes, owner);
  }

  // What is read when all launches are done: roots, of an updated param or state its snapshot.
  void finish(const std::vector<NodeId>& kept) {
    std::map<uint32_t, int64_t> snapshots;
    for (const BufferPlan::Snapshot& s : plan_.snapshots) snapshots[s.source.index] = s.offset;
    for (const NodeId id : kept) {
      const std::string reader = "the end of the run";
      const auto copy = snapshots.find(id.index);
      if (copy != snapshots.end())
        find(snapshot(id), copy->second, plan_.buffers[id.index].bytes, reader);
      else if (plan_.buffers[id.index].place != BufferPlace::none)
        read(id, reader);
    }
  }

  const BoundGraph& graph_;
  const KernelList& list_;
  const BufferPlan& plan_;
  std::map<uint32_t, NodeId> base_of_;  // of values that go on with another
  std::vector<bool> made_ = std::vector<bool>(plan_.buffers.size(), false);
  MemoryOwners memory_;
  std::string problem_;
};

}  // namespace

std::string verify_plan(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const std::vector<NodeId>& kept) {
  return PlanVerifier(graph, list, plan).run(kept);
}

}  // namespace einc
