#include "compiler/fuse/form_kernels.h"

#include <algorithm>
#include <queue>

#include "compiler/fuse/ordered_kernels.h"
#include "compiler/fuse/signature.h"
#include "compiler/lower/collapse.h"
#include "compiler/lower/contraction.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr uint32_t kNoGroup = UINT32_MAX;
constexpr size_t kLargestGroup = 64;
constexpr int64_t kSmallKernel = 65536;  // elements; below it parallelism does not matter
constexpr int64_t kEnoughPoints = 16;    // outer points that keep the threads busy

bool is_source(Op op) { return op == Op::input || op == Op::param || op == Op::state; }
bool reduces(Op op) { return op == Op::reduce || op == Op::arg_reduce || op == Op::fold; }

using Bits = std::vector<uint64_t>;
void set_bit(Bits& bits, uint32_t i) {
  if (bits.size() <= i / 64) bits.resize(i / 64 + 1);
  bits[i / 64] |= uint64_t{1} << i % 64;
}
bool test_bit(const Bits& bits, uint32_t i) { return i / 64 < bits.size() && (bits[i / 64] >> i % 64 & 1); }
void merge_bits(Bits& into, const Bits& from) {
  if (into.size() < from.size()) into.resize(from.size());
  for (size_t w = 0; w < from.size(); ++w) into[w] |= from[w];
}

class Former {
 public:
  Former(const BoundGraph& graph, const std::vector<NodeId>& roots, Fusion fusion)
      : graph_(graph),
        fusion_(fusion),
        is_root_(graph.graph.size(), false),
        free_(graph.graph.size(), false),
        computed_(graph.graph.size(), false),
        group_of_(graph.graph.size(), kNoGroup) {
    for (NodeId id : roots) is_root_[id.index] = true;
  }

  KernelList run() {
    find_free();
    find_readers();
    // Everything computed elsewhere counts as stored: what a group reads from another is.
    for (uint32_t i = 0; i < graph_.graph.size(); ++i)
      computed_[i] = is_computed(NodeId{i}) && kind_of(graph_.graph.nodes[i].op) != OpKind::view && !free_[i];
    for (uint32_t i = 0; i < graph_.graph.size(); ++i)
      if (is_computed(NodeId{i})) add(NodeId{i});
    finish();
    return std::move(list_);
  }

 private:
  struct Work {
    Group group;
    Bits ancestors;                       // groups that must run before
    std::vector<uint32_t> before;         // those it reads from; now_ tells what they have become
    std::vector<uint32_t> after_readers;  // groups that read what it updates
    bool alive = true;
    bool simple = false;  // elementwise nodes of one shape that read each other element by element
  };

  // Values made of constants and loop indices alone are computed where they are wanted.
  void find_free() {
    for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
      const Node& node = graph_.graph.nodes[i];
      if (!graph_.live[i]) continue;
      const bool simple =
          node.op == Op::constant || node.op == Op::iota || node.op == Op::map || node.op == Op::cast || kind_of(node.op) == OpKind::view;
      free_[i] = simple && std::all_of(node.operands.begin(), node.operands.end(), [&](NodeId x) { return free_[x.index]; });
    }
  }

  bool is_computed(NodeId id) const {
    const Node& node = graph_[id];
    if (!graph_.live[id.index] || is_source(node.op)) return false;
    if (is_root_[id.index]) return true;
    return !free_[id.index] && kind_of(node.op) != OpKind::view;
  }

  // Computed nodes and sources that `id` reads, through views.
  void for_each_read(NodeId id, const auto& visit) const {
    for (NodeId x : graph_[id].operands) {
      while (kind_of(graph_[x].op) == OpKind::view) x = graph_[x].operands[0];
      if (!free_[x.index]) visit(x);
    }
  }

  void find_readers() {
    readers_.resize(graph_.graph.size());
    for (uint32_t i = 0; i < graph_.graph.size(); ++i)
      if (is_computed(NodeId{i})) for_each_read(NodeId{i}, [&](NodeId x) { readers_[x.index].push_back(NodeId{i}); });
  }

  void add(NodeId id) {
    const auto own = static_cast<uint32_t>(work_.size());
    work_.push_back({{{id}, {}}, {}, {}, {}, true});
    now_.push_back(own);
    alive_.push_back(own);
    work_[own].simple = graph_[id].op == Op::map || graph_[id].op == Op::cast;
    group_of_[id.index] = own;
    std::vector<uint32_t> before;
    std::vector<NodeId> operands;
    for_each_read(id, [&](NodeId x) {
      if (is_source(graph_[x].op)) return;
      const uint32_t g = group_of_[x.index];
      merge_bits(work_[own].ancestors, work_[g].ancestors);
      set_bit(work_[own].ancestors, g);
      if (std::find(before.begin(), before.end(), g) == before.end()) before.push_back(g), operands.push_back(x);
    });
    work_[own].before = before;
    if (fusion_ == Fusion::off) return;
    uint32_t target = own;
    for (size_t k = 0; k < before.size(); ++k) {
      const uint32_t other = group_of_[operands[k].index];
      if (other == target) continue;
      const std::string refusal = try_join(other, target);
      if (refusal.empty())
        target = other;
      else
        list_.refusals.push_back({operands[k], id, refusal});
    }
  }

  // Joins group `later` into `earlier`; says why not.
  std::string try_join(uint32_t earlier, uint32_t later) {
    if (std::string refusal = unsuitable(earlier, later); !refusal.empty()) return refusal;
    if (lies_between(earlier, later)) return "another kernel must run between them";
    Group joined = join(work_[earlier].group, work_[later].group);
    const bool simple = stays_simple(earlier, later);
    if (!simple) {
      const std::string refusal = try_build(joined);
      if (!refusal.empty()) return refusal;
    }
    work_[earlier].simple = simple;
    const Bits ancestors = [&] {
      Bits all = work_[earlier].ancestors;
      merge_bits(all, work_[later].ancestors);
      return all;
    }();
    for (NodeId id : work_[later].group.members) group_of_[id.index] = earlier;
    work_[earlier].group = std::move(joined);
    work_[later].alive = false;
    if (work_[later].group.members.size() == 1) {
      now_[later] = earlier;
    } else {
      for (uint32_t& g : now_)
        if (g == later) g = earlier;
    }
    alive_.erase(std::find(alive_.rbegin(), alive_.rend(), later).base() - 1);
    work_[earlier].before.insert(work_[earlier].before.end(), work_[later].before.begin(), work_[later].before.end());
    work_[earlier].ancestors = ancestors;
    for (uint32_t g : alive_) {
      Work& w = work_[g];
      if (!test_bit(w.ancestors, earlier) && !test_bit(w.ancestors, later)) continue;
      merge_bits(w.ancestors, ancestors);
      set_bit(w.ancestors, earlier);
    }
    // A group never lies before itself.
    if (test_bit(work_[earlier].ancestors, earlier)) work_[earlier].ancestors[earlier / 64] &= ~(uint64_t{1} << earlier % 64);
    return {};
  }

  // A path from one to the other through a third passes through a direct predecessor of its end.
  bool lies_between(uint32_t a, uint32_t b) const {
    const auto reaches = [&](uint32_t from, uint32_t to) {
      return std::any_of(work_[to].before.begin(), work_[to].before.end(), [&](uint32_t g) {
        const uint32_t p = now_[g];
        return p != from && p != to && test_bit(work_[p].ancestors, from);
      });
    };
    return reaches(a, b) || reaches(b, a);
  }

  // Joining such groups needs no trial.
  bool stays_simple(uint32_t a, uint32_t b) const {
    if (!work_[a].simple || !work_[b].simple) return false;
    const Shape& shape = graph_.shape(work_[a].group.members.front());
    if (graph_.shape(work_[b].group.members.front()) != shape) return false;
    return std::all_of(work_[b].group.members.begin(), work_[b].group.members.end(), [&](NodeId id) {
      const Node& node = graph_[id];
      for (size_t k = 0; k < node.operands.size(); ++k) {
        const NodeId x = node.operands[k];
        const bool direct = group_of_[x.index] == a;
        if (direct && node.op == Op::map && (!node.as<MapAttr>().maps[k].is_identity() || graph_.shape(x) != shape)) return false;
        if (!direct && kind_of(graph_[x].op) == OpKind::view) return false;
      }
      return true;
    });
  }

  std::string unsuitable(uint32_t a, uint32_t b) const {
    size_t members = 0;
    int contractions = 0, reductions = 0;
    int64_t contracted = 0, largest = 0;
    for (uint32_t g : {a, b}) {
      members += work_[g].group.members.size();
      for (NodeId id : work_[g].group.members) {
        const Op op = graph_[id].op;
        if (is_ordered(op)) return "its loops have an order of their own";
        if (op == Op::contract) ++contractions, contracted = graph_.count(id);
        if (reduces(op)) ++reductions;
        largest = std::max(largest, graph_.count(id));
      }
    }
    if (members > kLargestGroup) return "the kernel would hold more than 64 nodes";
    if (contractions > 1) return "each contraction is a kernel of its own";
    if (contractions == 1 && reductions > 0) return "a reduction needs whole rows of the contraction";
    if (contractions == 1 && largest != contracted) return "the contraction's result is read more than once per element";
    if (contractions == 1 && only_reduced(work_[b].group.members.front())) return "what is only summed is computed where it is summed";
    if (contractions == 1 && graph_[work_[b].group.members.front()].op == Op::contract)
      return "what a contraction reads more than once is stored";
    return {};
  }

  // Joined to a contraction, which no reduction can follow, such a value would have to be stored.
  bool only_reduced(NodeId id) const {
    const auto& readers = readers_[id.index];
    return !is_root_[id.index] && !readers.empty() &&
           std::all_of(readers.begin(), readers.end(), [&](NodeId r) { return reduces(graph_[r].op); });
  }

  static Group join(const Group& a, const Group& b) {
    Group joined;
    joined.members.resize(a.members.size() + b.members.size());
    std::merge(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(), joined.members.begin());
    return joined;
  }

  // Why the group should not be one kernel; groups alike get the answer found before.
  std::string try_build(Group& group) {
    find_stored(group);
    const auto [known, fresh] = tried_.try_emplace(signer_.sign(group));
    if (!fresh) return known->second;
    const BuildResult result = build_kernel(graph_, group, computed_);
    return known->second = result.built ? slower(group, result.built->kernel) : result.refusal;
  }

  void find_stored(Group& group) const {
    group.stored.clear();
    for (NodeId id : group.members) {
      const auto& readers = readers_[id.index];
      const bool outside = std::any_of(readers.begin(), readers.end(),
                                       [&](NodeId r) { return !std::binary_search(group.members.begin(), group.members.end(), r); });
      if (outside || is_root_[id.index]) group.stored.push_back(id);
    }
  }

  static std::string slower(const Group& group, const Kernel& kernel) {
    if (kernel.reductions.empty()) return {};
    int64_t points = 1, total = 1;
    for (AxisId a : kernel.outer) points *= kernel.extent(a);
    for (const LoopAxis& axis : kernel.axes) total *= axis.extent;
    const bool contraction =
        std::any_of(kernel.stages.begin(), kernel.stages.end(), [](const Stage& s) { return s.axes.empty(); }) && group.stored.empty();
    if (contraction) return {};
    if (points < kEnoughPoints && total > kSmallKernel && group.stored.size() > 1) return "too few rows to share among threads";
    for (const Stage& stage : kernel.stages)
      for (const Store& store : stage.stores) {
        if (stage.axes.empty()) continue;
        // Rows are stored while they are reduced, so the reduced loops must be the innermost ones.
        if (!kernel.outer.empty() && kernel.outer.back() > stage.axes.back()) return "the reduction runs across the rows that are stored";
        (void)store;
      }
    return {};
  }

  // What reads an old param or state runs before the kernel that makes the new one, where nothing forbids it, so that the new
  // value can be written in its place.
  void order_updates() {
    for (const Update& update : graph_.graph.updates) {
      if (!is_computed(update.value)) continue;
      const uint32_t maker = group_of_[update.value.index];
      for (NodeId reader : readers_[update.target.index]) {
        const uint32_t other = group_of_[reader.index];
        if (other == maker || test_bit(work_[other].ancestors, maker) || test_bit(work_[maker].ancestors, other)) continue;
        work_[maker].after_readers.push_back(other);
        Bits ancestors = work_[other].ancestors;
        set_bit(ancestors, other);
        merge_bits(work_[maker].ancestors, ancestors);
        for (uint32_t g : alive_)
          if (test_bit(work_[g].ancestors, maker)) merge_bits(work_[g].ancestors, ancestors);
      }
    }
  }

  // When a kernel is due: with the last of its nodes of the earliest phase. What the optimizer adds to a gradient's kernel does not
  // delay it until all that it reads has piled up.
  uint32_t turn(const Group& group) const {
    Phase earliest = Phase::optimizer;
    for (NodeId id : group.members) earliest = std::min(earliest, graph_[id].origin.phase);
    uint32_t last = 0;
    for (NodeId id : group.members)
      if (graph_[id].origin.phase == earliest) last = id.index;
    return last;
  }

  // Kernels in an order that respects their operands, otherwise by their turn.
  void finish() {
    order_updates();
    struct Ready {
      uint32_t turn, group;
      bool operator<(const Ready& b) const { return turn > b.turn; }
    };
    std::vector<std::vector<uint32_t>> after(work_.size());
    std::vector<int> waiting(work_.size(), 0);
    std::priority_queue<Ready> ready;
    for (uint32_t g = 0; g < work_.size(); ++g) {
      if (!work_[g].alive) continue;
      std::vector<uint32_t> before = work_[g].after_readers;
      for (NodeId id : work_[g].group.members)
        for_each_read(id, [&](NodeId x) {
          if (is_source(graph_[x].op)) return;
          const uint32_t other = group_of_[x.index];
          if (other != g && std::find(before.begin(), before.end(), other) == before.end()) before.push_back(other);
        });
      for (uint32_t b : before) after[b].push_back(g);
      waiting[g] = static_cast<int>(before.size());
      if (before.empty()) ready.push({turn(work_[g].group), g});
    }
    list_.in_memory.assign(graph_.graph.size(), false);
    while (!ready.empty()) {
      const uint32_t g = ready.top().group;
      ready.pop();
      emit(work_[g].group);
      for (uint32_t a : after[g])
        if (--waiting[a] == 0) ready.push({turn(work_[a].group), a});
    }
    for (uint32_t g = 0; g < work_.size(); ++g) EINC_CHECK(!work_[g].alive || waiting[g] == 0, "kernels wait for each other");
  }

  void emit(Group& group) {
    find_stored(group);
    BuildResult result = build_kernel(graph_, group, computed_);
    EINC_CHECK(result.built.has_value(), "{} is no kernel: {}", to_string(graph_[group.members.back()].op), result.refusal);
    for (NodeId id : group.stored) list_.in_memory[id.index] = true;
    Kernel& kernel = result.built->kernel;
    kernel.streams = static_cast<int>(result.built->streams.size());
    kernel.sites = static_cast<int>(result.built->sites.size());
    collapse_axes(kernel);
    find_contraction(kernel);
    const std::string problem = verify(kernel);
    EINC_CHECK(problem.empty(), "{}\n{}", problem, to_string(kernel));
    result.built->group = std::move(group);
    list_.kernels.push_back(std::move(*result.built));
  }

  const BoundGraph& graph_;
  Fusion fusion_;
  std::vector<bool> is_root_, free_, computed_;
  std::vector<uint32_t> group_of_;
  std::vector<std::vector<NodeId>> readers_;
  std::vector<Work> work_;
  std::vector<uint32_t> alive_;
  std::vector<uint32_t> now_;  // per group: the group it has joined, itself at first
  Signer signer_{graph_, computed_};
  std::unordered_map<Signature, std::string, SignatureHash> tried_;
  KernelList list_;
};

}  // namespace

KernelList form_kernels(const BoundGraph& graph, const std::vector<NodeId>& roots, Fusion fusion) {
  return Former(graph, roots, fusion).run();
}

}  // namespace einc
