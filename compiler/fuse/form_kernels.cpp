// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/form_kernels.h"

#include <algorithm>
#include <functional>
#include <queue>

#include "compiler/fuse/group_order.h"
#include "compiler/fuse/join_rules.h"
#include "compiler/fuse/value_places.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

constexpr uint32_t kNoGroup = UINT32_MAX;

}  // namespace

class KernelFormer::Former {
 public:
  Former(const BoundGraph& graph, const ValuePlaces& values, AttentionGroups& attention, const KernelTarget& target, BuiltKernels& built,
         KernelList& list)
      : graph_(graph),
        target_(target),
        values_(values),
        attentions_(attention.kernels),
        list_(list),
        checked_(graph.graph.size(), false),
        is_new_value_(graph.graph.size(), false),
        updated_by_(graph.graph.size()),
        group_of_(graph.graph.size(), kNoGroup),
        cache_(graph, values.in_memory(), target, built) {
    for (const UpdateGuard::Check& check : graph.guard.checks)
      if (check.number != graph.guard.verdict) checks_.push_back(check.number);
    checks_.insert(checks_.end(), graph.guard.numbers.begin(), graph.guard.numbers.end());
    for (NodeId check : checks_) checked_[check.index] = true;
    for (const Update& update : graph.graph.updates) {
      is_new_value_[update.value.index] = true;
      updated_by_[update.target.index] = update.value;
    }
  }

  enum class Joins : uint8_t { nothing, operands };
  void group(Joins joins) {
    joins_ = joins;
    for (const Turn& turn : order())
      if (turn.attention == nullptr)
        add(turn.node);
      else
        add(*turn.attention);
  }

  void join_whole_reductions() {
    if (joins_ == Joins::nothing) return;
    for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
      const Node& node = graph_.graph.nodes[i];
      if (node.op != Op::reduce || !values_.is_computed(NodeId{i})) continue;
      const bool across =
          graph_.count(NodeId{i}) > 1 && !node.as<ReduceAttr>().axes.contains(static_cast<int>(graph_.shape(node.operands[0]).size()) - 1);
      if (graph_.count(NodeId{i}) == 1 || across) join_sibling(group_of_[i], graph_.count(node.operands[0]));
    }
  }

  // Kernels in an order that respects their operands, otherwise by their turn; in a pullback, what its outputs need comes first.
  void finish() {
    after_readers_.resize(work_.size());
    order_updates();
    let_copies_wait();
    struct Ready {
      bool later;
      uint32_t turn, group;
      bool operator<(const Ready& b) const { return std::pair(later, turn) > std::pair(b.later, b.turn); }
    };
    const std::vector<bool> first = needed_by_outputs();
    const auto ready_group = [&](uint32_t g) { return Ready{!first[g], turn(work_[g].group), g}; };
    std::vector<std::vector<uint32_t>> after(work_.size());
    std::vector<int> waiting(work_.size(), 0);
    std::priority_queue<Ready> ready;
    for (uint32_t g = 0; g < work_.size(); ++g) {
      if (!work_[g].alive) continue;
      const std::vector<uint32_t> before = read_by(g, after_readers_[g]);
      for (uint32_t b : before) after[b].push_back(g);
      waiting[g] = static_cast<int>(before.size());
      if (before.empty()) ready.push(ready_group(g));
    }
    list_.in_memory.assign(graph_.graph.size(), false);
    while (!ready.empty()) {
      const uint32_t g = ready.top().group;
      ready.pop();
      if (work_[g].attention)
        emit(std::move(*work_[g].attention));
      else
        emit(std::move(work_[g].group));
      for (uint32_t a : after[g])
        if (--waiting[a] == 0) ready.push(ready_group(a));
    }
    for (uint32_t g = 0; g < work_.size(); ++g) EINC_CHECK(!work_[g].alive || waiting[g] == 0, "kernels wait for each other");
  }

 private:
  // Those, and the groups whose values the group reads.
  std::vector<uint32_t> read_by(uint32_t g, std::vector<uint32_t> before) const {
    for (NodeId id : work_[g].group.members)
      values_.for_each_read_once(id, [&](NodeId x) {
        if (is_source(graph_[x].op)) return;
        const uint32_t other = group_of_[x.index];
        if (other != g && std::find(before.begin(), before.end(), other) == before.end()) before.push_back(other);
      });
    return before;
  }

  // Of a pullback the groups that make its outputs or are read on the way there; otherwise none.
  std::vector<bool> needed_by_outputs() const {
    std::vector<bool> needed(work_.size(), false);
    if (graph_.pulled.empty()) return needed;
    std::vector<uint32_t> pending;
    const auto need = [&](uint32_t g) {
      if (!needed[g]) pending.push_back(g);
      needed[g] = true;
    };
    for (uint32_t i = 0; i < graph_.graph.size(); ++i)
      if (values_.is_root(NodeId{i}) && !graph_.pulled[i] && group_of_[i] != kNoGroup) need(group_of_[i]);
    while (!pending.empty()) {
      const uint32_t g = pending.back();
      pending.pop_back();
      for (uint32_t before : read_by(g, {})) need(before);
    }
    return needed;
  }

  void add(NodeId id) {
    std::vector<uint32_t> before;
    std::vector<NodeId> operands;
    values_.for_each_read_once(id, [&](NodeId x) {
      if (is_source(graph_[x].op)) return;
      const uint32_t g = group_of_[x.index];
      if (std::find(before.begin(), before.end(), g) == before.end()) before.push_back(g), operands.push_back(x);
    });
    const uint32_t own = order_.add(before);
    work_.push_back(rules_.work_of(id));
    work_.back().checked = checked_[id.index] || id == graph_.guard.verdict;
    work_.back().guarded = graph_.guard.is_guarded(id);
    work_.back().dry = graph_.guard.dry_number(id);
    group_of_[id.index] = own;
    if (const NodeId base = state_below(id); base.valid()) {
      work_[own].group.base = base;
      list_.continued.push_back({base, id});
    }
    if (graph_[id].op == Op::scan_result) return go_with_scan(id, own);
    if (joins_ == Joins::nothing) return;
    if (const auto parts = scatter_onto(id, own)) return go_on(id, own, *parts);
    uint32_t target = own;
    for (NodeId operand : operands) {
      const uint32_t other = group_of_[operand.index];
      if (other == target) continue;
      std::string refusal = try_join(other, target);
      if (refusal.empty())
        target = other;
      else
        list_.refusals.push_back({operand, id, std::move(refusal)});
    }
  }

  // A state of which `id` replaces elements and which nothing else reads: they can be written where it lies.
  NodeId state_below(NodeId id) const {
    const Node& node = graph_[id];
    if (!list_.in_place || node.op != Op::scatter_set || graph_[node.operands[0]].op != Op::state) return {};
    const NodeId state = node.operands[0];
    if (values_.is_root(state) || values_.readers(state).size() > 1) return {};
    return updated_by_[state.index] == id ? state : NodeId{};
  }

  // A sum of a scatter and of a value that nobody else reads, or of a state whose new value it is: its updates can be added to that where
  // it lies.
  struct ScatterOnto {
    NodeId base, scatter;
  };
  std::optional<ScatterOnto> scatter_onto(NodeId id, uint32_t own) const {
    const Node& node = graph_[id];
    if (!list_.in_place || node.op != Op::map || node.as<MapAttr>().fn != MapFn::add) return std::nullopt;
    const auto alone = [&](NodeId x) {
      return !values_.is_root(x) && values_.readers(x).size() == 1 && graph_.lies_as(x, graph_.layout(id)) &&
             graph_[x].type.dtype == node.type.dtype;
    };
    const auto mine = [&](NodeId x) { return values_.is_in_memory(x) && alone(x); };
    const auto is_base = [&](NodeId x) {
      if (!is_new_value_[id.index]) return mine(x);
      return graph_[x].op == Op::state && updated_by_[x.index] == id && !graph_.guard.is_guarded(id) && alone(x);
    };
    for (size_t k : {0, 1}) {
      const NodeId scatter = node.operands[k], base = node.operands[1 - k];
      if (graph_.is_pulled(scatter) != graph_.is_pulled(id)) continue;
      if (scatter == base || graph_[scatter].op != Op::scatter_add || graph_.is_one_hot(scatter) || !mine(scatter) || !is_base(base))
        continue;
      if (!node.as<MapAttr>().maps[0].is_identity() || !node.as<MapAttr>().maps[1].is_identity()) continue;
      if (work_[group_of_[scatter.index]].group.members.size() > 1 || order_.lies_between(group_of_[scatter.index], own)) continue;
      return ScatterOnto{base, scatter};
    }
    return std::nullopt;
  }
  // A scan's results are made by its launch.
  void go_with_scan(NodeId id, uint32_t own) {
    const uint32_t group = group_of_[graph_[id].operands[0].index];
    order_.join(group, own);
    group_of_[id.index] = group;
    work_[group].group.members.push_back(id);
    work_[group].guarded = work_[group].guarded || work_[own].guarded;
    work_[own].alive = false;
  }

  void go_on(NodeId id, uint32_t own, const ScatterOnto& parts) {
    const uint32_t group = group_of_[parts.scatter.index];
    order_.join(group, own);
    group_of_[id.index] = group;
    work_[group].group.members.push_back(id);
    work_[own].alive = false;
    list_.continued.push_back({parts.base, id});
  }

  void add(GraphKernel& attention) {
    const auto own = static_cast<uint32_t>(work_.size());
    for (NodeId id : attention.group.members) group_of_[id.index] = own;
    std::vector<uint32_t> before;
    for (NodeId id : attention.group.members)
      values_.for_each_read_once(id, [&](NodeId x) {
        const uint32_t g = is_source(graph_[x].op) ? own : group_of_[x.index];
        if (g != own && std::find(before.begin(), before.end(), g) == before.end()) before.push_back(g);
      });
    order_.add(before);
    GroupWork work{attention.group};
    work.attention = &attention;
    work_.push_back(std::move(work));
  }

  // Computed nodes in the graph's order, but that what attention reads comes before it and its nodes are taken at once, and what waits for
  // checks comes behind them.
  struct Turn {
    NodeId node;
    GraphKernel* attention;
  };
  std::vector<Turn> order() {
    std::vector<GraphKernel*> kernel_of(graph_.graph.size(), nullptr);
    for (GraphKernel& a : attentions_)
      for (NodeId id : a.group.members) kernel_of[id.index] = &a;
    std::vector<Turn> turns;
    std::vector<bool> seen(graph_.graph.size(), false);
    const auto visit = [&](const auto& self, NodeId id) -> void {
      if (seen[id.index]) return;
      GraphKernel* attention = kernel_of[id.index];
      const std::vector<NodeId> own = attention ? attention->group.members : std::vector<NodeId>{id};
      for (NodeId member : own) seen[member.index] = true;
      for (NodeId member : own)
        values_.for_each_read(member, [&](NodeId x) {
          if (!is_source(graph_[x].op)) self(self, x);
        });
      turns.push_back({id, attention});
    };
    for (const bool guarded : {false, true})
      for (uint32_t i = 0; i < graph_.graph.size(); ++i)
        if (values_.is_computed(NodeId{i}) && graph_.guard.is_guarded(NodeId{i}) == guarded) visit(visit, NodeId{i});
    return turns;
  }

  void join_sibling(uint32_t own, int64_t elements) {
    std::vector<NodeId> others;
    for (NodeId member : work_[own].group.members)
      values_.for_each_read_once(member, [&](NodeId x) {
        const std::span<const NodeId> readers = values_.readers(x);
        if (graph_.count(x) < elements || (!is_source(graph_[x].op) && group_of_[x.index] == own)) return;
        others.insert(others.end(), readers.begin(), readers.end());
        if (target_.column_sums > 0 && !is_source(graph_[x].op)) others.push_back(x);
      });
    std::vector<uint32_t> seen;
    for (NodeId reader : others) {
      const uint32_t other = group_of_[reader.index];
      if (std::ranges::find(seen, other) != seen.end()) continue;
      seen.push_back(other);
      const GroupWork& work = work_[other];
      if (other == own || work.attention || work.contractions > 0 || work.largest != elements) continue;
      // Where one sums along rows both do: over the same, or the other over all rows.
      const bool sums_rows = work_[own].reduces_rows;
      if (work.reduces_rows != sums_rows) continue;
      if (sums_rows && target_.column_sums == 0 && work.reduced != work_[own].reduced) continue;
      if (try_join(other, own, Meeting::in_what_they_read).empty()) return;
    }
  }

  // How groups meet that are to be joined.
  enum class Meeting : uint8_t { one_reads_the_other, in_what_they_read };

  // Joins group `later` into `earlier`; says why not.
  std::string try_join(uint32_t earlier, uint32_t later, Meeting meeting = Meeting::one_reads_the_other) {
    GroupWork &into = work_[earlier], &from = work_[later];
    if (std::string refusal = rules_.unsuitable(into, from); !refusal.empty()) return refusal;
    if (order_.lies_between(earlier, later)) return "another kernel must run between them";
    if ((into.guarded || from.guarded) && (comes_before_checks(earlier) || comes_before_checks(later)))
      return "a step that would store what is not finite ends between them";
    Group joined = join(into.group, from.group);
    if (meeting == Meeting::in_what_they_read) joined.siblings = true;
    const bool simple = stays_simple(earlier, later);
    if (!simple) {
      find_stored(joined);
      if (const std::string& refusal = cache_.refusal(joined); !refusal.empty()) return refusal;
    }
    order_.join(earlier, later);
    for (NodeId id : from.group.members) group_of_[id.index] = earlier;
    into.group = std::move(joined);
    into.simple = simple;
    into.take(from);
    from.alive = false;
    return {};
  }

  // The verdict is a check as well: a number that it follows from, made in a kernel that stores, would have that run before.
  bool comes_before_checks(uint32_t group) const {
    const auto precedes = [&](NodeId check) {
      const uint32_t other = check.valid() ? group_of_[check.index] : kNoGroup;
      return other != kNoGroup && order_.precedes(group, other);
    };
    return std::ranges::any_of(checks_, precedes) || precedes(graph_.guard.verdict);
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
        if (!direct && (kind_of(graph_[x].op) == OpKind::view || values_.is_made_where_read(x))) return false;
      }
      return true;
    });
  }

  static Group join(const Group& a, const Group& b) {
    Group joined;
    joined.siblings = a.siblings || b.siblings;
    joined.members.resize(a.members.size() + b.members.size());
    std::merge(a.members.begin(), a.members.end(), b.members.begin(), b.members.end(), joined.members.begin());
    return joined;
  }

  void find_stored(Group& group) const {
    group.stored.clear();
    for (NodeId id : group.members) {
      const std::span<const NodeId> readers = values_.readers(id);
      const bool outside = std::any_of(readers.begin(), readers.end(),
                                       [&](NodeId r) { return !std::binary_search(group.members.begin(), group.members.end(), r); });
      if (outside || values_.is_root(id)) group.stored.push_back(id);
    }
  }

  // What reads an old param or state runs before the kernel that makes the new one, where nothing forbids it, so that the new
  // value can be written in its place. What a step looks at before it changes anything comes before both.
  void order_updates() {
    for (const Update& update : graph_.graph.updates) {
      if (!values_.is_computed(update.value)) continue;
      const uint32_t maker = group_of_[update.value.index];
      for (NodeId reader : values_.readers(update.target)) run_before(group_of_[reader.index], maker);
    }
    for (const auto& [check, value] : graph_.guard.before) run_before(group_of_[check.index], group_of_[value.index]);
    for (uint32_t i = 0; i < graph_.graph.size(); ++i) {
      const bool waits = graph_.guard.is_dry(NodeId{i}) || graph_.guard.is_guarded(NodeId{i});
      if (waits && values_.is_computed(NodeId{i})) after_checks(group_of_[i]);
    }
  }

  // What is made again for the backward waits for all else that the first of its readers waits for. Turns alone would let copies for
  // earlier layers run while a kernel of this one is held up, and fill memory long before they are read.
  void let_copies_wait() {
    std::vector<std::pair<uint32_t, uint32_t>> copies;  // by turn
    for (uint32_t g = 0; g < work_.size(); ++g)
      if (work_[g].alive && work_[g].late) copies.emplace_back(turn(work_[g].group), g);
    if (copies.empty()) return;  // there is no limit
    std::vector<std::vector<uint32_t>> readers(work_.size());
    for (uint32_t g = 0; g < work_.size(); ++g)
      if (work_[g].alive)
        for (const uint32_t read : read_by(g, {}))
          if (work_[read].late) readers[read].push_back(g);
    // The last first: what a copy is made for knows by then what it waits for itself.
    std::ranges::sort(copies, std::ranges::greater{});
    for (const auto& [own, copy] : copies) {
      if (readers[copy].empty()) continue;
      const uint32_t first = *std::ranges::min_element(readers[copy], {}, [&](uint32_t g) { return turn(work_[g].group); });
      for (const uint32_t before : read_by(first, after_readers_[first]))
        if (!work_[before].late) run_before(before, copy);
    }
  }

  void after_checks(uint32_t group) {
    for (NodeId check : checks_)
      if (values_.is_computed(check)) run_before(group_of_[check.index], group);
    const NodeId verdict = graph_.guard.verdict;
    if (verdict.valid() && work_[group].dry == 0) run_before(group_of_[verdict.index], group);
  }

  void run_before(uint32_t first, uint32_t second) {
    if (first == second || order_.precedes(first, second) || order_.precedes(second, first)) return;
    after_readers_[second].push_back(first);
    order_.require(first, second);
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

  void emit(Group group) {
    find_stored(group);
    for (NodeId id : group.stored) list_.in_memory[id.index] = true;
    const LaunchWhen when = when_runs(group);
    const Op op = graph_[group.members.front()].op;
    if (op == Op::scan || is_collective(op)) return emit_whole(std::move(group), when);
    for (GraphKernel& k : cache_.kernels(std::move(group))) {
      k.when = when;
      list_.kernels.push_back(std::move(k));
    }
  }

  // Its buffers alone: what an iteration of a scan does is scheduled by a pass of its own (schedule_scans); what devices do together is the
  // runtime's.
  void emit_whole(Group group, LaunchWhen when) {
    auto kernel = std::make_shared<Kernel>();
    kernel->collective = is_collective(graph_[group.members.front()].op);
    GraphKernel made;
    const auto add = [&](NodeId id, BufferAccess access) {
      made.buffers.push_back(id);
      kernel->buffers.push_back({graph_[id].type.dtype, access, graph_.count(id)});
    };
    for (NodeId id : graph_[group.members.front()].operands) add(id, BufferAccess::read);
    for (NodeId id : group.stored) add(id, BufferAccess::write);
    made.kernel = std::move(kernel);
    made.group = std::move(group);
    made.when = when;
    list_.kernels.push_back(std::move(made));
  }

  LaunchWhen when_runs(const Group& group) const {
    const UpdateGuard& guard = graph_.guard;
    if (guard.is_dry(group.members.front())) return graph_.graph.mesh.of_device ? LaunchWhen::always : LaunchWhen::unbounded;
    const bool replaces = std::ranges::any_of(guard.before, [&](const auto& b) { return b.second == group.members.back(); });
    const bool stores = replaces || std::ranges::any_of(group.stored, [&](NodeId id) { return guard.is_guarded(id); });
    return stores ? LaunchWhen::checked : LaunchWhen::always;
  }

  void emit(GraphKernel attention) {
    for (NodeId id : attention.group.stored) list_.in_memory[id.index] = true;
    list_.kernels.push_back(std::move(attention));
  }

  const BoundGraph& graph_;
  const KernelTarget& target_;
  const ValuePlaces& values_;
  std::vector<GraphKernel>& attentions_;
  KernelList& list_;
  Joins joins_ = Joins::nothing;
  std::vector<NodeId> checks_;                // come before what is guarded or dry
  std::vector<bool> checked_, is_new_value_;  // new: of a param or state
  std::vector<NodeId> updated_by_;            // of params and states
  std::vector<uint32_t> group_of_;
  std::vector<GroupWork> work_;
  std::vector<std::vector<uint32_t>> after_readers_;  // per group: those that read what it updates, and checks before it
  JoinRules rules_{graph_, values_, target_};
  GroupOrder order_;
  KernelCache cache_;
};

KernelFormer::KernelFormer(const BoundGraph& graph, const ValuePlaces& values, AttentionGroups& attention, const KernelTarget& target,
                           BuiltKernels& built, KernelList& list)
    : former_(std::make_unique<Former>(graph, values, attention, target, built, list)) {}
KernelFormer::~KernelFormer() = default;
KernelFormer::KernelFormer(KernelFormer&&) noexcept = default;
KernelFormer& KernelFormer::operator=(KernelFormer&&) noexcept = default;

void KernelFormer::join_operands() { former_->group(Former::Joins::operands); }
void KernelFormer::keep_apart() { former_->group(Former::Joins::nothing); }
void KernelFormer::join_whole_reductions() { former_->join_whole_reductions(); }
void KernelFormer::emit() { former_->finish(); }

}  // namespace einc
