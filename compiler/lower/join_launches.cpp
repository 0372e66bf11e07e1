// SPDX-License-Identifier: Apache-2.0
// A launch moves to the place of an earlier one, its leader, with all that it leads; so they are compared with all that runs from there up
// to where they were: pairs of byte ranges of the plan, of which one is written. What is in the way may move itself, as the parts of a sum
// before the kernel that adds them: rounds go on while one joins some. Equal kernels are told by their text, which holds all that code is
// made from but how f32 is multiplied.
#include "compiler/lower/join_launches.h"

#include <algorithm>
#include <iterator>
#include <unordered_map>

namespace einc {
namespace {

constexpr uint32_t kMostTogether = 1024;  // blocks along y; far below what a grid may have

class Joiner {
 public:
  Joiner(const BoundGraph& graph, const BufferPlan& plan, KernelList& list)
      : graph_(graph), plan_(plan), list_(list), touched_(list.kernels.size()), alone_(list.kernels.size(), false) {
    for (uint32_t k = 0; k < touched_.size(); ++k) find_touched(k);
    for (const HeldValue& held : list.library.held) touched_[held.until].push_back(at_place(held.value, false));
    for (const FusedProduct& fused : list.library.fused) runs_instead(fused.parts, fused.at);
    for (const AttentionCall& call : list.library.attention) runs_instead(call.parts, call.at());
  }

  void run() {
    std::vector<std::vector<uint32_t>> alike = find_alike();
    at_.resize(list_.kernels.size());
    for (uint32_t k = 0; k < at_.size(); ++k) at_[k] = {k};
    for (bool joined = true; joined;) {
      joined = false;
      for (std::vector<uint32_t>& leaders : alike) joined = join(leaders) || joined;
    }
    list_.runs_with.resize(at_.size());
    for (uint32_t place = 0; place < at_.size(); ++place)
      for (const uint32_t k : at_[place]) list_.runs_with[k] = place;
  }

 private:
  // Launches of one kernel each, in the order of their first.
  std::vector<std::vector<uint32_t>> find_alike() const {
    std::vector<std::vector<uint32_t>> alike;
    std::unordered_map<std::string, size_t> alike_of;
    std::unordered_map<const Kernel*, std::string> text_of;
    for (uint32_t k = 0; k < list_.kernels.size(); ++k) {
      const GraphKernel& launch = list_.kernels[k];
      if (alone_[k] || !launch.streams.empty() || !launch.sites.empty()) continue;
      const auto [text, fresh] = text_of.try_emplace(launch.kernel.get());
      if (fresh) text->second = to_string(*launch.kernel);
      const auto [of, is_new] = alike_of.try_emplace(text->second + (multiplies_in_tf32(launch) ? " in tf32" : ""), alike.size());
      if (is_new) alike.emplace_back();
      alike[of->second].push_back(k);
    }
    return alike;
  }

  // Leaves those that lead.
  bool join(std::vector<uint32_t>& leaders) {
    std::vector<uint32_t> left{leaders[0]};
    for (size_t i = 1; i < leaders.size(); ++i) {
      std::vector<uint32_t>&earlier = at_[left.back()], &later = at_[leaders[i]];
      if (earlier.size() + later.size() > kMostTogether || !may_move(leaders[i], left.back())) {
        left.push_back(leaders[i]);
        continue;
      }
      earlier.insert(earlier.end(), later.begin(), later.end());
      later.clear();
    }
    const bool joined = left.size() < leaders.size();
    leaders = std::move(left);
    return joined;
  }

  struct Touched {
    int64_t from, to;
    bool writes, updates;
  };

  Touched at_place(NodeId value, bool writes) const {
    const NodeId holder = plan_.holder(value);
    const BufferPlan::Buffer& place = plan_.buffers[holder.index];
    return {place.offset, place.offset + place.bytes, writes, writes && is_source(graph_[holder].op)};
  }

  void find_touched(uint32_t k) {
    const GraphKernel& launch = list_.kernels[k];
    const std::vector<BufferUse>& uses = launch.kernel->buffers;
    alone_[k] =
        launch.kernel->scan || launch.kernel->collective || launch.kernel->attention || list_.library.product(k) || copies_gathered(launch);
    for (size_t b = 0; b < launch.buffers.size(); ++b)
      if (launch.buffers[b].valid()) touched_[k].push_back(at_place(launch.buffers[b], uses[b].access != BufferAccess::read));
    for (const Parts& parts : launch.parts) {
      const BufferUse& use = uses[parts.buffer];
      const int64_t from = plan_.parts_offset + parts.offset;
      touched_[k].push_back({from, from + use.count * bytes_of(use.dtype), use.access != BufferAccess::read, false});
    }
  }

  // A copy in another order of what devices put together, which is on its way until it is wanted: if the layers' were one launch, all would
  // be awaited at once.
  bool copies_gathered(const GraphKernel& launch) const {
    if (launch.group.members.size() != 1) return false;
    const Node& node = graph_[launch.group.members.front()];
    return node.op == Op::cast && graph_[node.operands[0]].op == Op::all_gather;
  }

  // At its place an alternative touches what all its parts do.
  void runs_instead(const std::vector<uint32_t>& parts, uint32_t at) {
    for (const uint32_t part : parts) {
      alone_[part] = true;
      if (part != at) touched_[at].insert(touched_[at].end(), touched_[part].begin(), touched_[part].end());
    }
  }

  bool multiplies_in_tf32(const GraphKernel& launch) const {
    return std::ranges::all_of(launch.group.members,
                               [&](NodeId id) { return graph_[id].op != Op::contract || is_in_tf32(graph_.graph, id); });
  }

  bool updates(uint32_t launch) const { return std::ranges::any_of(touched_[launch], &Touched::updates); }

  // What launches touch together, as ranges that do not overlap, ascending: many launches are compared with all of them.
  struct Together {
    std::vector<std::pair<int64_t, int64_t>> all, written;
  };
  Together together(const std::vector<uint32_t>& launches) const {
    Together made;
    for (const uint32_t launch : launches)
      for (const Touched& t : touched_[launch]) {
        made.all.emplace_back(t.from, t.to);
        if (t.writes) made.written.emplace_back(t.from, t.to);
      }
    for (auto* ranges : {&made.all, &made.written}) {
      std::ranges::sort(*ranges);
      size_t count = 0;
      for (const auto& [from, to] : *ranges)
        if (count > 0 && from < (*ranges)[count - 1].second)
          (*ranges)[count - 1].second = std::max((*ranges)[count - 1].second, to);
        else
          (*ranges)[count++] = {from, to};
      ranges->resize(count);
    }
    return made;
  }

  bool apart(uint32_t launch, const Together& others) const {
    return std::ranges::none_of(touched_[launch], [&](const Touched& t) {
      const auto& ranges = t.writes ? others.all : others.written;
      const auto behind = std::ranges::lower_bound(ranges, t.to, {}, [](const auto& range) { return range.first; });
      return behind != ranges.begin() && std::prev(behind)->second > t.from;
    });
  }

  // What runs at a place to an earlier one.
  bool may_move(uint32_t place, uint32_t to) const {
    if (updates(to) != updates(place) || list_.kernels[to].when != list_.kernels[place].when) return false;
    const Together moved = together(at_[place]);
    // Backwards: what keeps a launch where it is stands mostly right before it.
    for (uint32_t between = place; between-- > to;)
      for (const uint32_t other : at_[between])
        if (!apart(other, moved)) return false;
    return true;
  }

  const BoundGraph& graph_;
  const BufferPlan& plan_;
  KernelList& list_;
  std::vector<std::vector<Touched>> touched_;  // by launch, with its alternative
  std::vector<bool> alone_;
  std::vector<std::vector<uint32_t>> at_;  // by launch: those that run at its place, none where it has moved
};

}  // namespace

void join_launches(const BoundGraph& graph, const BufferPlan& plan, KernelList& list) { Joiner(graph, plan, list).run(); }

}  // namespace einc
