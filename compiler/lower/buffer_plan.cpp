// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/buffer_plan.h"

#include <algorithm>

#include "compiler/ir/device_values.h"
#include "compiler/lower/arena.h"
#include "compiler/lower/divide_reductions.h"

namespace einc {
namespace {

constexpr uint32_t kNotMade = UINT32_MAX;

int64_t aligned(int64_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }

// Whether an element read at an outer point is one that no other outer point stores: both lie in the point's own row.
bool stays_in_row(const Kernel& kernel, const Subscript& read, const Subscript& stored) {
  int64_t row = INT64_MAX;  // from one outer point to the next
  for (AxisId a : kernel.outer) {
    if (read.affine.coefficient(a) != stored.affine.coefficient(a) || stored.affine.coefficient(a) <= 0) return false;
    if (kernel.extent(a) > 1) row = std::min(row, stored.affine.coefficient(a));
  }
  for (AxisId a : kernel.outer)
    if (row != INT64_MAX && stored.affine.coefficient(a) % row != 0) return false;
  const uint64_t outer = bits(kernel.outer);
  const auto last = [&](const Subscript& index) {
    int64_t most = index.affine.constant;
    for (const Affine::Term& t : index.affine.terms) {
      if (t.coefficient < 0) return INT64_MAX;
      if (!(outer >> t.axis & 1)) most += t.coefficient * (kernel.extent(t.axis) - 1);
    }
    for (const Subscript::Dynamic& d : index.dynamic) {
      const Scalar& position = kernel.values[d.value];
      if (position.kind != ScalarKind::checked || d.coefficient < 0) return INT64_MAX;
      most += d.coefficient * (position.integer - 1);
    }
    return most;
  };
  return read.affine.constant >= 0 && stored.affine.constant >= 0 && last(read) < row && last(stored) < row;
}

// True when the kernel may store into buffer `out` where buffer `in` lies: it reads of `in` only the element that it stores
// in `out`, and not after that; others of the same row only before.
bool reads_only_what_it_writes(const GraphKernel& k, uint16_t in, uint16_t out) {
  const Kernel& kernel = *k.kernel;
  const Store* store = nullptr;
  size_t stored = 0;
  for (size_t s = 0; s < kernel.stages.size(); ++s) {
    if (kernel.stages[s].ordered) return false;
    for (const Store& x : kernel.stages[s].stores)
      if (x.buffer == out) store = &x, stored = s;
  }
  if (store == nullptr || kernel.sequence) return false;
  // Elements of different sizes lie at different places: the first of a bf16 value of twice as many under the first of an f32 one, but not
  // the second.
  if (bytes_of(kernel.buffers[in].dtype) != bytes_of(kernel.buffers[out].dtype)) return false;
  const auto reads = [&](const Scalar& v) { return v.kind == ScalarKind::load && v.slot == in; };
  const std::vector<bool> by_last = needed_by(kernel, kernel.stages[stored]);
  for (size_t i = 0; i < kernel.values.size(); ++i) {
    const Scalar& v = kernel.values[i];
    if (!reads(v) || (v.index == store->index && v.guards.empty())) continue;
    if (by_last[i] || !v.guards.empty() || !stays_in_row(kernel, v.index, store->index)) return false;
  }
  for (size_t s = stored + 1; s < kernel.stages.size(); ++s) {
    const std::vector<bool> used = needed_by(kernel, kernel.stages[s]);
    for (size_t i = 0; i < used.size(); ++i)
      if (used[i] && reads(kernel.values[i])) return false;
  }
  return true;
}

class BufferPlanner {
 public:
  BufferPlanner(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& kept, RunMode mode)
      : graph_(graph), list_(list), mode_(mode), end_(static_cast<uint32_t>(list.kernels.size())) {
    const auto nodes = graph.graph.size();
    plan_.buffers.resize(nodes);
    first_.assign(nodes, kNotMade);
    last_.assign(nodes, 0);
    below_.assign(nodes, false);
    handed_over_.assign(nodes, false);
    plan_.saved.assign(nodes, false);
    held_until_.assign(nodes, 0);
    find_lifetimes();
    for (const HeldValue& h : list.library.held) {
      first_[h.value.index] = std::min(first_[h.value.index], h.from);
      last_[h.value.index] = std::max(last_[h.value.index], h.until);
      held_until_[h.value.index] = std::max(held_until_[h.value.index], h.until);
    }
    for (NodeId id : kept)
      if (!is_source(graph_[id].op)) last_[id.index] = end_;
    take_snapshots(kept);
  }

  BufferPlan run() {
    for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
      if (!graph_.live[i]) continue;
      const Node& node = graph_.graph.nodes[i];
      BufferPlan::Buffer& b = plan_.buffers[i];
      b.bytes = graph_.count_in_memory(NodeId{i}) * bytes_of(node.type.dtype);
      b.place = is_source(node.op) ? BufferPlace::source : list_.in_memory[i] ? BufferPlace::arena : BufferPlace::none;
    }
    for (const Output& output : graph_.graph.outputs) {
      BufferPlan::Buffer& b = plan_.buffers[output.node.index];
      if (is_device_value(output) && b.place == BufferPlace::arena) b.place = BufferPlace::bound;
    }
    if (mode_ == RunMode::training)
      for (const Update& gradient : graph_.graph.gradients) {
        BufferPlan::Buffer& b = plan_.buffers[gradient.value.index];
        if (b.place == BufferPlace::arena) b.place = BufferPlace::gradient;
      }
    for (const Continued& c : list_.continued) continue_in_place(c);
    for (const auto& [dry, gradient] : graph_.guard.dry_products) lie_in_gradient(dry.index, gradient);
    place_updates();
    place_arena();
    place_others();
    return std::move(plan_);
  }

 private:
  void find_lifetimes() {
    for (uint32_t k = 0; k < end_; ++k) {
      Phase first = Phase::optimizer, last = Phase::forward;
      for (NodeId id : list_.kernels[k].group.members)
        first = std::min(first, graph_[id].origin.phase), last = std::max(last, graph_[id].origin.phase);
      begins_.push_back(std::min(first, last)), phases_.push_back(last);
      for (NodeId id : list_.kernels[k].buffers) {
        if (!id.valid()) continue;
        first_[id.index] = std::min(first_[id.index], k);
        last_[id.index] = std::max(last_[id.index], k);
      }
    }
  }

  void continue_in_place(const Continued& c) {
    if (is_source(graph_[c.base].op)) {
      plan_.buffers[c.whole.index].place = BufferPlace::in_target;
      plan_.buffers[c.whole.index].target = c.base;
      return;
    }
    plan_.buffers[c.base.index].place = BufferPlace::in_target;
    plan_.buffers[c.base.index].target = c.whole;
    first_[c.whole.index] = std::min(first_[c.whole.index], first_[c.base.index]);
  }

  // A dry copy is read before the kernel runs that makes the gradient, whose place of its own is empty until then: the look takes no
  // memory. Where that kernel comes first, as when the update could not join it, the copy lies in the arena.
  void lie_in_gradient(uint32_t dry, NodeId gradient) {
    BufferPlan::Buffer& b = plan_.buffers[dry];
    if (b.place != BufferPlace::arena || plan_.buffers[gradient.index].place != BufferPlace::gradient) return;
    if (last_[dry] >= first_[gradient.index]) return;
    b.place = BufferPlace::in_target;
    b.target = gradient;
  }

  void take_snapshots(const std::vector<NodeId>& kept) {
    std::vector<bool> updated(graph_.graph.size(), false);
    for (const Update& update : graph_.graph.updates)
      if (graph_.live[update.value.index] && update.value != update.target) updated[update.target.index] = true;
    for (NodeId id : kept) {
      if (!updated[id.index]) continue;
      updated[id.index] = false;
      plan_.snapshots.push_back({id, 0});
    }
  }

  void place_updates() {
    if (!list_.in_place) return;  // new values are copied after the last kernel
    for (const Update& update : graph_.graph.updates) {
      const uint32_t v = update.value.index, t = update.target.index;
      BufferPlan::Buffer& b = plan_.buffers[v];
      if (b.place != BufferPlace::arena || b.bytes != plan_.buffers[t].bytes || first_[v] == kNotMade) continue;
      const uint32_t made = first_[v];
      if (first_[t] != kNotMade && last_[t] > made) continue;
      if (!may_overwrite(made, update.target, update.value)) continue;
      b.place = BufferPlace::in_target;
      b.target = update.target;
      last_[t] = end_;  // a second update cannot take the same place
    }
  }

  // Whether kernel k may write `out` where `in` lies, if it reads `in` at all.
  bool may_overwrite(uint32_t k, NodeId in, NodeId out) const {
    const std::vector<NodeId>& buffers = list_.kernels[k].buffers;
    const auto read = std::find(buffers.begin(), buffers.end(), in), written = std::find(buffers.begin(), buffers.end(), out);
    if (read == buffers.end()) return true;
    if (std::count(written, buffers.end(), out) > 1) return false;  // pieces that lie side by side, each a buffer of the kernel's own
    return reads_only_what_it_writes(list_.kernels[k], static_cast<uint16_t>(read - buffers.begin()),
                                     static_cast<uint16_t>(written - buffers.begin()));
  }

  // In training, read by a later phase or at the end: lies below. Of a device's graph that is so for a stage of a pipeline alone, which has
  // what lies below once for each microbatch on its way; the kernel that makes a norm's input makes what the backward reads of its row,
  // too, and still is one of the forward.
  bool is_kept(uint32_t i) const {
    const Mesh& mesh = graph_.graph.mesh;
    if (mesh.of_device ? !mesh.stages.any() : mode_ == RunMode::inference) return false;
    return last_[i] == end_ || phases_[last_[i]] > (mesh.of_device ? begins_ : phases_)[first_[i]];
  }

  bool is_number(uint32_t i) const { return list_.numbers_apart && graph_.count_in_memory(NodeId{i}) == 1; }

  bool in_arena(uint32_t i) const { return plan_.buffers[i].place == BufferPlace::arena || plan_.buffers[i].place == BufferPlace::shared; }

  // A buffer as large that ends at the kernel that makes i, and that it may overwrite.
  std::optional<uint32_t> overwritable(uint32_t i) const {
    if (!list_.in_place) return std::nullopt;
    for (NodeId x : list_.kernels[first_[i]].buffers) {
      if (!x.valid() || x.index == i || !in_arena(x.index) || is_number(x.index) || first_[x.index] >= first_[i] ||
          last_[x.index] != first_[i])
        continue;
      if (held_until_[x.index] == first_[i] || handed_over_[x.index] || plan_.buffers[x.index].bytes != plan_.buffers[i].bytes) continue;
      if (is_kept(i) && !below_[x.index]) continue;
      if (may_overwrite(first_[i], x, NodeId{i})) return x.index;
    }
    return std::nullopt;
  }

  void put(uint32_t i, bool may_fill_holes) {
    BufferPlan::Buffer& b = plan_.buffers[i];
    if (is_number(i)) {
      b.offset = numbers_;
      numbers_ += kBufferAlignment;
      return;
    }
    if (const auto over = overwritable(i)) {
      b.place = BufferPlace::shared;
      b.offset = plan_.buffers[*over].offset;
      below_[i] = below_[*over];
      handed_over_[*over] = true;
      return;
    }
    const int64_t bytes = aligned(b.bytes);
    const std::optional<int64_t> hole = may_fill_holes ? below_arena_.allocate_inside(bytes) : std::nullopt;
    below_[i] = hole || is_kept(i);
    b.offset = hole ? *hole : (below_[i] ? below_arena_ : above_arena_).allocate(bytes);
  }

  void place_arena() {
    std::vector<std::vector<uint32_t>> starting(end_ + 1), ending(end_ + 1);
    uint32_t last_kept = 0;
    for (uint32_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].place != BufferPlace::arena) continue;
      starting[first_[i]].push_back(i);
      ending[last_[i]].push_back(i);
      if (is_kept(i)) last_kept = std::max(last_kept, first_[i]);
    }
    for (uint32_t k = 0; k <= end_; ++k) {
      for (uint32_t i : starting[k]) put(i, k > last_kept);
      for (uint32_t i : ending[k])
        if (!handed_over_[i] && !is_number(i))
          (below_[i] ? below_arena_ : above_arena_).release(plan_.buffers[i].offset, aligned(plan_.buffers[i].bytes));
    }
    for (uint32_t i = 0; i < plan_.buffers.size(); ++i)
      if (in_arena(i) && !below_[i]) plan_.buffers[i].offset += below_arena_.size() + (is_number(i) ? above_arena_.size() : 0);
    plan_.arena_bytes = below_arena_.size() + above_arena_.size() + numbers_;
    sum_saved();
    find_fullest();
  }

  // The arena itself may be larger than what is ever alive in it: its holes are told apart from values that way.
  void find_fullest() {
    std::vector<int64_t> saved(end_ + 2, 0), others(end_ + 2, 0);  // what each launch has more than the one before
    for (uint32_t i = 0; i < plan_.buffers.size(); ++i) {
      if (!in_arena(i)) continue;
      std::vector<int64_t>& alive = plan_.saved[i] ? saved : others;
      alive[first_[i]] += plan_.buffers[i].bytes;
      // At its last launch a value that hands its place over is the result already.
      alive[last_[i] + (handed_over_[i] ? 0 : 1)] -= plan_.buffers[i].bytes;
    }
    BufferPlan::Fullest now;
    for (uint32_t k = 0; k <= end_; ++k) {
      now = {k, now.saved + saved[k], now.others + others[k]};
      plan_.in_use.push_back(now.saved + now.others);
      if (now.saved + now.others > plan_.fullest.saved + plan_.fullest.others) plan_.fullest = now;
    }
  }

  void place_others() {
    plan_.parts_offset = aligned(plan_.arena_bytes);
    plan_.total_bytes = plan_.parts_offset + parts_bytes(list_);
    place_all(BufferPlace::gradient);
    for (BufferPlan::Snapshot& snapshot : plan_.snapshots) {
      snapshot.offset = plan_.total_bytes;
      plan_.total_bytes += aligned(plan_.buffers[snapshot.source.index].bytes);
    }
    plan_.own_bytes = plan_.total_bytes;
    place_all(BufferPlace::source);
    place_all(BufferPlace::bound);
  }

  void place_all(BufferPlace place) {
    for (BufferPlan::Buffer& b : plan_.buffers) {
      if (b.place != place) continue;
      b.offset = plan_.total_bytes;
      plan_.total_bytes += aligned(b.bytes);
    }
  }

  void sum_saved() {
    std::vector<bool> read(plan_.buffers.size(), false);  // by the backward, after it was made
    for (uint32_t k = 0; k < end_; ++k) {
      if (begins_[k] != Phase::backward) continue;
      for (NodeId id : list_.kernels[k].buffers)
        if (id.valid() && first_[id.index] < k) read[id.index] = true;
    }
    for (uint32_t i = 0; i < plan_.buffers.size(); ++i) {
      const Node& node = graph_.graph.nodes[i];
      plan_.saved[i] = read[i] && in_arena(i) && begins_[first_[i]] == Phase::forward && !is_cast_of_param(node);
      if (plan_.saved[i]) plan_.saved_bytes += plan_.buffers[i].bytes;
    }
  }
  bool is_cast_of_param(const Node& node) const {
    if (node.op != Op::cast) return false;
    NodeId x = node.operands[0];
    while (kind_of(graph_[x].op) == OpKind::view) x = graph_[x].operands[0];
    return graph_[x].op == Op::param;
  }

  const BoundGraph& graph_;
  const KernelList& list_;
  RunMode mode_;
  uint32_t end_;
  BufferPlan plan_;
  std::vector<Phase> begins_, phases_;  // of kernels: the first and the last that their nodes are of
  std::vector<uint32_t> first_, last_;  // launches that touch a node's buffer
  std::vector<uint32_t> held_until_;    // the last launch that holds a node's value; 0: none
  std::vector<bool> below_, handed_over_;
  Arena below_arena_, above_arena_;
  int64_t numbers_ = 0;  // bytes behind both that numbers take
};

}  // namespace

NodeId BufferPlan::holder(NodeId id) const {
  while (buffers[id.index].place == BufferPlace::in_target) id = buffers[id.index].target;
  return id;
}

BufferPlan plan_buffers(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& kept, RunMode mode) {
  return BufferPlanner(graph, list, kept, mode).run();
}

}  // namespace einc
