#include "compiler/cost/plan.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/cost/memory.h"
#include "compiler/lower/arena.h"

namespace einc {
namespace {

constexpr int64_t kLargestBuffer = int64_t{1} << 62;

bool is_source(Op op) { return op == Op::input || op == Op::param || op == Op::state; }

bool is_user_state(const Node& node) { return node.op == Op::state && node.as<StateAttr>().role == StateRole::user; }

class Planner {
 public:
  Planner(const Graph& graph, const Sizes& sizes, const Layouts& layouts, const std::vector<bool>& constant, const Bindings& dims,
          PlanMode mode)
      : graph_(graph), sizes_(sizes), layouts_(layouts), constant_(constant), dims_(dims), mode_(mode) {}

  std::optional<MemoryPlan> run() {
    plan_.live = live_nodes(graph_, mode_);
    plan_.placements.resize(graph_.size());
    find_last_readers();
    if (!measure()) return std::nullopt;
    place_gradients();
    place_updates();
    place_arena();
    sum_sources();
    sum_saved();
    return std::move(plan_);
  }

 private:
  uint32_t end() const { return graph_.size(); }
  uint32_t buffer(NodeId id) const { return layouts_.buffer[id.index].index; }
  Placement& place(uint32_t i) { return plan_.placements[i]; }

  // Readers of a buffer: nodes that compute from it (directly or through views), and the end of the run for roots.
  void find_last_readers() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      place(i).first = place(i).last = i;
      if (!plan_.live[i] || layouts_.buffer[i].index != i) continue;
      for (NodeId x : graph_[NodeId{i}].operands) {
        Placement& p = place(buffer(x));
        p.last = std::max(p.last, i);
        if (constant_[buffer(x)] && !constant_[i]) read_constants_.push_back(buffer(x));
      }
    }
    for (const Output& output : graph_.outputs) keep_to_the_end(output.node);
    if (graph_.loss.valid()) keep_to_the_end(graph_.loss);
    for (const Update& update : graph_.updates) keep_to_the_end(update.value);
  }
  void keep_to_the_end(NodeId id) {
    if (!plan_.live[id.index]) return;
    place(buffer(id)).last = end();
    if (constant_[buffer(id)]) read_constants_.push_back(buffer(id));
  }

  // Bytes of every stored buffer.
  bool measure() {
    std::unordered_map<Poly, int64_t> known;
    std::vector<bool> wanted(graph_.size(), false);
    for (uint32_t i : read_constants_) wanted[i] = true;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const bool dead = !plan_.live[i] && !is_source(node.op);
      if (dead || layouts_.buffer[i].index != i || node.op == Op::constant || (constant_[i] && !wanted[i])) continue;
      const Poly& count = sizes_.count(NodeId{i});
      auto it = known.find(count);
      if (it == known.end()) {
        const auto value = count.evaluate_integer(dims_);
        if (!value || *value > kLargestBuffer / 8) return false;
        it = known.emplace(count, *value).first;
      }
      place(i).bytes = it->second * bytes_of(node.type.dtype);
      place(i).region = is_source(node.op) ? Region::source : constant_[i] ? Region::constant : Region::arena;
      if (place(i).region == Region::constant) plan_.constants = plan_.constants + Rational(place(i).bytes);
    }
    return true;
  }

  // A parameter's gradient is computed in its fixed buffer when it is a buffer of its own with the parameter's bytes.
  void place_gradients() {
    if (mode_ != PlanMode::training) return;
    for (const Update& gradient : graph_.gradients) {
      if (!plan_.live[gradient.value.index]) continue;
      Placement& p = place(buffer(gradient.value));
      if (p.region == Region::arena && p.bytes == place(gradient.target.index).bytes) p.region = Region::gradient;
      plan_.gradients = plan_.gradients + Rational(place(gradient.target.index).bytes);
    }
  }

  // True when `node` may write where its operand in buffer `b` lies: it reads that buffer only element by element.
  bool overwrites_safely(NodeId id, uint32_t b) const {
    const Node& node = graph_[id];
    for (size_t k = 0; k < node.operands.size(); ++k) {
      const NodeId x = node.operands[k];
      if (buffer(x) != b) continue;
      if (x.index != b) return false;
      if (node.op == Op::scatter_set) {
        if (k != 0) return false;
      } else if (node.op != Op::map || !node.as<MapAttr>().maps[k].is_identity() || graph_.type(x).rank() != node.type.rank()) {
        return false;
      }
    }
    return true;
  }

  // The new value of a target goes into its place when the old one has no later reader.
  void place_updates() {
    for (const Update& update : graph_.updates) {
      if (!plan_.live[update.value.index]) continue;
      const uint32_t v = update.value.index, t = update.target.index;
      Placement& p = place(v);
      if (layouts_.buffer[v].index != v || p.region != Region::arena || p.bytes != place(t).bytes) continue;
      if (place(t).last > v || (place(t).last == v && !overwrites_safely(update.value, t))) continue;
      p.region = Region::in_place;
      p.shares = update.target;
      place(t).last = end();  // a second update cannot take the same place
    }
  }

  static int64_t aligned(int64_t bytes) { return (bytes + kArenaAlignment - 1) / kArenaAlignment * kArenaAlignment; }

  // An operand whose buffer ends at this node and is as large: the result takes its place.
  std::optional<uint32_t> overwritable_operand(uint32_t i) const {
    const Node& node = graph_.nodes[i];
    if (node.op != Op::map && node.op != Op::scatter_set) return std::nullopt;
    for (NodeId x : node.operands) {
      const Placement& p = plan_.placements[buffer(x)];
      const bool arena = p.region == Region::arena || p.region == Region::shared;
      if (!arena || p.last != i || x.index != buffer(x) || p.bytes != plan_.placements[i].bytes) continue;
      if (is_kept(i) && !below_[x.index]) continue;
      if (overwrites_safely(NodeId{i}, x.index)) return x.index;
    }
    return std::nullopt;
  }

  // In training, read by a later phase or at the end: lies below.
  bool is_kept(uint32_t i) const {
    if (mode_ == PlanMode::inference) return false;
    const uint32_t last = plan_.placements[i].last;
    return last == end() || graph_.nodes[last].origin.phase > graph_.nodes[i].origin.phase;
  }

  // An operand's place, a hole below once everything kept is placed, or an interval of its own.
  void put(uint32_t i, bool may_fill_holes) {
    Placement& p = place(i);
    if (const auto over = overwritable_operand(i)) {
      p.region = Region::shared;
      p.shares = NodeId{*over};
      p.offset = place(*over).offset;
      below_[i] = below_[*over];
      released_[*over] = true;
      return;
    }
    const int64_t bytes = aligned(p.bytes);
    const std::optional<int64_t> hole = may_fill_holes ? below_arena_.allocate_inside(bytes) : std::nullopt;
    below_[i] = hole || is_kept(i);
    p.offset = hole ? *hole : (below_[i] ? below_arena_ : above_arena_).allocate(bytes);
  }

  void place_arena() {
    uint32_t last_kept = 0;
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (place(i).region == Region::arena && is_kept(i)) last_kept = i;
    std::vector<std::vector<uint32_t>> ending(graph_.size() + 1);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (place(i).region == Region::arena) {
        put(i, i > last_kept);
        ending[place(i).last].push_back(i);
      }
      for (uint32_t b : ending[i])
        if (!released_[b]) (below_[b] ? below_arena_ : above_arena_).release(place(b).offset, aligned(place(b).bytes));
    }
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (in_arena(i) && !below_[i]) place(i).offset += below_arena_.size();
    plan_.arena = Rational(below_arena_.size()) + Rational(above_arena_.size());
  }
  bool in_arena(uint32_t i) const { return plan_.placements[i].region == Region::arena || plan_.placements[i].region == Region::shared; }

  void sum_sources() {
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      const bool counts = plan_.live[i] || (mode_ == PlanMode::training && is_source(node.op));
      if (!counts) continue;
      const Rational bytes(place(i).bytes);
      if (node.op == Op::input) plan_.inputs = plan_.inputs + bytes;
      if (node.op == Op::param) plan_.parameters = plan_.parameters + bytes;
      if (node.op != Op::state) continue;
      if (is_user_state(node))
        plan_.state = plan_.state + bytes;
      else
        plan_.optimizer_state = plan_.optimizer_state + bytes;
    }
  }

  void sum_saved() {
    std::vector<bool> counted(graph_.size(), false);
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (!plan_.live[i] || node.origin.phase != Phase::backward || layouts_.buffer[i].index != i) continue;
      for (NodeId x : node.operands) {
        const uint32_t b = buffer(x);
        if (counted[b] || graph_.nodes[b].origin.phase != Phase::forward || !in_arena(b) || param_behind(graph_, NodeId{b}).valid())
          continue;
        counted[b] = true;
        plan_.saved = plan_.saved + Rational(place(b).bytes);
      }
    }
  }

  const Graph& graph_;
  const Sizes& sizes_;
  const Layouts& layouts_;
  const std::vector<bool>& constant_;
  const Bindings& dims_;
  PlanMode mode_;
  MemoryPlan plan_;
  std::vector<uint32_t> read_constants_;  // constant buffers that a run reads
  Arena below_arena_, above_arena_;
  std::vector<bool> released_ = std::vector<bool>(graph_.size(), false);  // handed over to a result
  std::vector<bool> below_ = std::vector<bool>(graph_.size(), false);     // of arena buffers: among what is kept
};

}  // namespace

std::vector<bool> live_nodes(const Graph& graph, PlanMode mode) {
  std::vector<bool> live(graph.size(), false);
  auto mark = [&](NodeId id) {
    if (id.valid()) live[id.index] = true;
  };
  for (const Output& output : graph.outputs) mark(output.node);
  if (mode == PlanMode::training || graph.outputs.empty()) mark(graph.loss);
  for (const Update& update : graph.updates) {
    if (mode == PlanMode::inference && !is_user_state(graph[update.target])) continue;
    mark(update.value);
    mark(update.target);
  }
  for (uint32_t i = graph.size(); i-- > 0;)
    if (live[i])
      for (NodeId operand : graph.nodes[i].operands) live[operand.index] = true;
  return live;
}

std::optional<MemoryPlan> plan_memory(const Graph& graph, const Sizes& sizes, const Layouts& layouts, const std::vector<bool>& constant,
                                      const Bindings& dims, PlanMode mode) {
  return Planner(graph, sizes, layouts, constant, dims, mode).run();
}

}  // namespace einc
