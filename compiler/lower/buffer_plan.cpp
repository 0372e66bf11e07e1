#include "compiler/lower/buffer_plan.h"

#include <algorithm>

#include "compiler/lower/arena.h"

namespace einc {
namespace {

constexpr uint32_t kNever = UINT32_MAX;

bool is_source(Op op) { return op == Op::input || op == Op::param || op == Op::state; }

// True when the kernel may store into buffer `out` where buffer `in` lies: one stage reads and writes the same element.
bool reads_only_what_it_writes(const GraphKernel& k, uint16_t in, uint16_t out) {
  const Kernel& kernel = k.kernel;
  if (kernel.stages.size() != 1 || kernel.stages[0].ordered || !kernel.stages[0].reductions.empty()) return false;
  const auto& stores = kernel.stages[0].stores;
  const auto store = std::find_if(stores.begin(), stores.end(), [&](const Store& s) { return s.buffer == out; });
  if (store == stores.end()) return false;
  return std::all_of(kernel.values.begin(), kernel.values.end(), [&](const Scalar& v) {
    return v.kind != ScalarKind::load || v.slot != in || (v.index == store->index && v.guards.empty());
  });
}

class Planner {
 public:
  Planner(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& kept) : graph_(graph), list_(list) {
    const auto nodes = graph.graph.size();
    plan_.buffers.resize(nodes);
    first_.assign(nodes, kNever);
    last_.assign(nodes, 0);
    find_lifetimes();
    for (NodeId id : kept) last_[id.index] = static_cast<uint32_t>(list.kernels.size());
  }

  BufferPlan run() {
    for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
      if (!graph_.live[i]) continue;
      const Node& node = graph_.graph.nodes[i];
      BufferPlan::Buffer& b = plan_.buffers[i];
      b.bytes = graph_.count(NodeId{i}) * bytes_of(node.type.dtype);
      b.place = is_source(node.op) ? BufferPlace::source : list_.in_memory[i] ? BufferPlace::arena : BufferPlace::none;
    }
    for (const Update& gradient : graph_.graph.gradients)
      if (plan_.buffers[gradient.value.index].place == BufferPlace::arena)
        plan_.buffers[gradient.value.index].place = BufferPlace::gradient;
    place_updates();
    place_arena();
    return std::move(plan_);
  }

 private:
  void find_lifetimes() {
    for (uint32_t k = 0; k < list_.kernels.size(); ++k)
      for (NodeId id : list_.kernels[k].buffers) {
        if (!id.valid()) continue;
        first_[id.index] = std::min(first_[id.index], k);
        last_[id.index] = std::max(last_[id.index], k);
      }
  }

  void place_updates() {
    for (const Update& update : graph_.graph.updates) {
      const uint32_t v = update.value.index, t = update.target.index;
      BufferPlan::Buffer& b = plan_.buffers[v];
      if (b.place != BufferPlace::arena || b.bytes != plan_.buffers[t].bytes || first_[v] == kNever) continue;
      const uint32_t made = first_[v];
      if (first_[t] != kNever && last_[t] > made) continue;
      const GraphKernel& k = list_.kernels[made];
      const auto in = std::find(k.buffers.begin(), k.buffers.end(), update.target),
                 out = std::find(k.buffers.begin(), k.buffers.end(), update.value);
      if (in != k.buffers.end() &&
          !reads_only_what_it_writes(k, static_cast<uint16_t>(in - k.buffers.begin()), static_cast<uint16_t>(out - k.buffers.begin())))
        continue;
      b.place = BufferPlace::in_target;
      b.target = update.target;
      last_[t] = static_cast<uint32_t>(list_.kernels.size());  // a second update cannot take the same place
    }
  }

  static int64_t aligned(int64_t bytes) { return (bytes + kBufferAlignment - 1) / kBufferAlignment * kBufferAlignment; }

  void place_arena() {
    std::vector<std::vector<uint32_t>> starting(list_.kernels.size() + 1), ending(list_.kernels.size() + 1);
    for (uint32_t i = 0; i < plan_.buffers.size(); ++i) {
      if (plan_.buffers[i].place != BufferPlace::arena) continue;
      starting[first_[i]].push_back(i);
      ending[last_[i]].push_back(i);
    }
    Arena arena;
    for (size_t k = 0; k <= list_.kernels.size(); ++k) {
      for (uint32_t i : starting[k]) plan_.buffers[i].offset = arena.allocate(aligned(plan_.buffers[i].bytes));
      for (uint32_t i : ending[k]) arena.release(plan_.buffers[i].offset, aligned(plan_.buffers[i].bytes));
    }
    plan_.arena_bytes = arena.size();
  }

  const BoundGraph& graph_;
  const KernelList& list_;
  BufferPlan plan_;
  std::vector<uint32_t> first_, last_;  // launches that touch a node's buffer
};

}  // namespace

BufferPlan plan_buffers(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& kept) {
  return Planner(graph, list, kept).run();
}

}  // namespace einc
