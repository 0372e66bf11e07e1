// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/remade_step.h"

#include <algorithm>

#include "compiler/fuse/join_rules.h"

namespace einc {
namespace {

Scheduling unlimited(Scheduling options) {
  options.memory_limit.reset();
  options.observe = nullptr;
  return options;
}

bool same_value(const Node& a, const Node& b) {
  return a.op == b.op && a.operands == b.operands && a.attr == b.attr && a.type.dtype == b.type.dtype;
}

bool runs_forward(const Forming& forming, const GraphKernel& k) {
  return std::ranges::any_of(k.group.members, [&](NodeId id) { return (*forming.bound)[id].origin.phase == Phase::forward; });
}

}  // namespace

RemadeStep::RemadeStep(const Forming& forming, std::span<const SchedulePass> rest)
    : forming_(forming),
      graph_(forming.graph()),
      rest_(rest),
      options_(unlimited(forming.options)),
      whole_(formed(graph_, {})),
      bound_(forming.bind()),
      sums_(whole_.list, forming.target.sum_order),
      values_(bound_, places(), forming.target.flops_per_byte),
      saved_(values_.saved()) {
  find_candidates();
}

Forming RemadeStep::formed(const Graph& graph, const RemadeValues::Copies& copies) const {
  Forming made{graph, forming_.dims, forming_.mode, options_, forming_.target, forming_.ask_attention, forming_.besides};
  made.built = forming_.built;
  made.late = copies.late, made.where_read = copies.where_read, made.twice = copies.twice;
  run_passes(made, rest_);
  return made;
}

// Nodes given by those that kernels are formed of; invalid for what passes have added, but for copies in another order in memory
// (orient_operands), which stand right behind what they are copies of: a backward that reads such a copy has the value saved.
std::vector<NodeId> RemadeStep::given() const {
  const Graph& formed = whole_.bound->graph;
  std::vector<NodeId> given(formed.size());
  for (uint32_t i = 0; i < graph_.size(); ++i)
    if (const NodeId to = whole_.place_of(NodeId{i}); to.valid()) given[to.index] = NodeId{i};
  for (uint32_t i = 1; i < formed.size(); ++i)
    if (!given[i].valid() && given[i - 1].valid() && same_value(formed.nodes[i], formed.nodes[i - 1])) given[i] = given[i - 1];
  return given;
}

RemadeValues::Places RemadeStep::places() {
  const std::vector<NodeId> of = given();
  RemadeValues::Places places;
  for (auto* list : {&places.saved, &places.fixed, &places.early, &places.where_read}) list->assign(graph_.size(), false);
  for (uint32_t i = 0; i < graph_.size(); ++i)
    if (const NodeId to = whole_.place_of(NodeId{i}); to.valid()) places.where_read[i] = whole_.values->is_made_where_read(to);
  for (const GraphKernel& k : whole_.list.kernels) {
    if (k.kernel->attention)
      for (NodeId id : k.group.members)
        if (of[id.index].valid()) places.fixed[of[id.index].index] = true;
    if (runs_forward(whole_, k)) {
      // A row's number is made again with what it follows from: it costs nothing, and frees that.
      int64_t largest = 0;
      for (const BufferUse& b : k.kernel->buffers) largest = std::max(largest, b.count);
      for (NodeId id : k.group.members)
        if (of[id.index].valid()) places.early[of[id.index].index] = whole_.bound->count(id) * kRowsNumber > largest;
      continue;
    }
    for (NodeId buffer : k.buffers) {
      const NodeId id = buffer.valid() ? of[buffer.index] : NodeId{};
      if (!id.valid() || is_source(graph_[id].op) || graph_[id].origin.phase != Phase::forward) continue;
      places.saved[id.index] = true;
    }
  }
  // The product is written and read again where no epilogue goes on with it.
  for (const FusedProduct& fused : whole_.list.library.fused) {
    RemadeValues::Places::Epilogue& epilogue = places.epilogues.emplace_back();
    if (fused.at != fused.plain) epilogue.bytes = 2 * fused.product.rows * fused.product.columns * bytes_of(fused.product.result.dtype);
    for (const uint32_t part : fused.parts)
      for (NodeId id : whole_.list.kernels[part].group.members)
        if (of[id.index].valid()) epilogue.nodes.push_back(of[id.index]);
  }
  return places;
}

void RemadeStep::find_candidates() {
  const std::vector<NodeId> of = given();
  std::vector<bool> root(graph_.size(), false);
  for (NodeId id : whole_.roots)
    if (of[id.index].valid()) root[of[id.index].index] = true;
  for (uint32_t i = 0; i < graph_.size(); ++i) {
    const NodeId id{i}, to = whole_.place_of(id);
    if (graph_[id].origin.phase != Phase::forward || !to.valid() || !whole_.list.in_memory[to.index]) continue;
    if (!saved_[i])
      stored_.push_back(id);
    else if (!root[i] && values_.may_be_made(id))
      candidates_.push_back(id);
  }
}

void RemadeStep::save(const std::vector<NodeId>& more) {
  std::vector<bool> saved = saved_;
  for (NodeId id : more) saved[id.index] = true;
  values_.save_just(std::move(saved));
}

// `at`: of each node of graph(), in what was formed.
int64_t RemadeStep::all_bytes(const Forming& made, std::span<const NodeId> at) const {
  const std::optional<MemoryLimit>& limit = forming_.options.memory_limit;
  if (!limit || !limit->of_device) return made.plan->total_bytes;
  const FormedView view{*made.bound, made.list, *made.plan, at};
  return limit->of_device(view, made.besides(view));
}

int64_t RemadeStep::bytes_with(const std::vector<NodeId>& chosen) {
  const auto [at, is_new] = planned_.try_emplace(values_.made_and_chosen(chosen), kTooMuch);
  if (is_new) at->second = plan_with(chosen);
  return at->second;
}

int64_t RemadeStep::plan_with(const std::vector<NodeId>& chosen) const {
  const RemadeValues::Copies copies = values_.copies(chosen);
  const Forming made = formed(*copies.graph, copies);
  if (!sums_.are_in(made.list)) return kTooMuch;
  std::vector<NodeId> at;
  for (const NodeId id : copies.at) at.push_back(id.valid() ? made.place_of(id) : id);
  return all_bytes(made, at);
}

}  // namespace einc
