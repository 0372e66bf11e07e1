#include "compiler/fuse/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "compiler/fuse/schedule_passes.h"
#include "compiler/ir/remap.h"
#include "runtime/base/dtype.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

constexpr size_t kMostClasses = 12;  // of values that are tried: each costs a plan, and what is small frees little
constexpr int64_t kLongLoop = 64;    // elements: a vector of any processor's, several times
constexpr size_t kMostInputs = 4;    // of layers, each of which costs all those plans again

class LimitedStep {
 public:
  LimitedStep(const Forming& forming, std::span<const SchedulePass> rest)
      : forming_(forming), graph_(forming.graph()), rest_(rest), options_(forming.options) {
    options_.memory_limit.reset();
    options_.observe = nullptr;
  }

  struct Copies {
    std::unique_ptr<const Graph> graph;
    std::vector<NodeId> at, late, where_read;  // of nodes given; the copies, and those that their readers make
  };
  struct Result {
    Copies copies;
    Recomputation made;
  };

  // Nothing where the step fits as it is.
  std::optional<Result> run(int64_t limit) {
    find_saved();
    if (bytes_ <= limit) return std::nullopt;
    bound_.emplace(forming_.bind());
    least_ = bytes_;
    const std::vector<bool> saved = saved_;
    std::vector<bool> best_saved = saved;
    std::vector<Class> best;
    double best_cost = std::numeric_limits<double>::infinity();
    // Saving one more value of each layer (its input) may let others be made from that, not from the layer before.
    std::vector<Class> more = largest(classes_of(stored_), kMostInputs);
    more.insert(more.begin(), Class{});
    for (const Class& inputs : more) {
      saved_ = saved;
      for (NodeId id : inputs.members) saved_[id.index] = true;
      classes_ = largest(classes_of(candidates_), kMostClasses);
      const int64_t reached = choose(limit);
      least_ = std::min(least_, reached);
      if (const double cost = cost_of(chosen()); reached <= limit && cost < best_cost)
        best = classes_, best_saved = saved_, best_cost = cost;
    }
    if (best.empty()) refuse(limit);
    classes_ = std::move(best), saved_ = std::move(best_saved);
    take_back(limit);
    const std::vector<NodeId> values = chosen();
    return Result{with_copies(values), {values, cost_of(values)}};
  }

 private:
  // ---- the step as it is

  void find_saved() {
    const Forming whole = formed(graph_, {});
    for (const GraphKernel& k : whole.list.kernels)
      for (const std::string& sum : sums_of(*k.kernel)) ++sums_[sum];
    bytes_ = whole.plan->total_bytes;
    std::vector<NodeId> given(whole.bound->graph.size());  // of each node formed of
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (const NodeId to = whole.at.empty() ? NodeId{i} : whole.at[i]; to.valid()) given[to.index] = NodeId{i};
    saved_.assign(graph_.size(), false);
    attention_.assign(graph_.size(), false);
    where_read_.assign(graph_.size(), false);
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (const NodeId to = whole.at.empty() ? NodeId{i} : whole.at[i]; to.valid()) where_read_[i] = whole.values->is_made_where_read(to);
    std::vector<bool> of_attention(graph_.size(), false);
    for (const GraphKernel& k : whole.list.kernels) {
      Phase phase = Phase::optimizer;
      for (NodeId id : k.group.members) phase = std::min(phase, (*whole.bound)[id].origin.phase);
      if (k.kernel->attention)
        for (NodeId id : k.group.members)
          if (given[id.index].valid()) attention_[given[id.index].index] = true;
      if (phase == Phase::forward) continue;
      for (size_t b = 0; b < k.buffers.size(); ++b) {
        const NodeId id = k.buffers[b].valid() ? given[k.buffers[b].index] : NodeId{};
        if (!id.valid() || is_source(graph_[id].op) || graph_[id].origin.phase != Phase::forward) continue;
        saved_[id.index] = true;
        if (k.kernel->attention) of_attention[id.index] = true;
      }
    }
    std::vector<bool> root(graph_.size(), false);
    for (NodeId id : whole.roots)
      if (given[id.index].valid()) root[given[id.index].index] = true;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      if (saved_[i] && !of_attention[i] && !root[i] && is_made_again(NodeId{i})) candidates_.push_back(NodeId{i});
      const NodeId to = whole.at.empty() ? NodeId{i} : whole.at[i];
      const bool stored = to.valid() && whole.list.in_memory[to.index] && graph_.nodes[i].origin.phase == Phase::forward;
      if (stored && !saved_[i] && !attention_[i]) stored_.push_back(NodeId{i});
    }
  }

  Forming formed(const Graph& graph, const Copies& copies) const {
    Forming made{graph, forming_.dims, forming_.mode, options_, forming_.target};
    made.late = copies.late, made.where_read = copies.where_read;
    run_passes(made, rest_);
    return made;
  }

  bool is_made_again(NodeId id) const {
    const Op op = graph_[id].op;
    if (attention_[id.index]) return false;
    return op == Op::map || op == Op::cast || op == Op::contract || op == Op::random || op == Op::pad || op == Op::concat ||
           kind_of(op) == OpKind::view;
  }

  // ---- what a choice means

  // Per node: whether the backward makes it anew. A value chosen, and what follows from one on the way to what the backward reads.
  std::vector<bool> made_again(const std::vector<NodeId>& chosen) const {
    std::vector<bool> is_chosen(graph_.size(), false), again(graph_.size(), false);
    for (NodeId id : chosen) is_chosen[id.index] = true;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const Node& node = graph_.nodes[i];
      if (node.origin.phase != Phase::forward || !is_made_again(NodeId{i}) || (saved_[i] && !is_chosen[i])) continue;
      again[i] = is_chosen[i] || std::ranges::any_of(node.operands, [&](NodeId x) { return again[x.index]; });
    }
    // What the chosen ones are made of, down to what is kept.
    for (uint32_t i = graph_.size(); i-- > 0;) {
      if (!again[i]) continue;
      for (NodeId x : graph_.nodes[i].operands)
        if (!saved_[x.index] && graph_[x].origin.phase == Phase::forward && is_made_again(x)) again[x.index] = true;
    }
    return again;
  }

  // Of those that something of the backward reads, or another that is made.
  std::vector<bool> needed(const std::vector<bool>& again) const {
    std::vector<bool> needed(graph_.size(), false);
    for (uint32_t i = graph_.size(); i-- > 0;) {
      if (!bound_->live[i]) continue;
      const bool reads = graph_.nodes[i].origin.phase != Phase::forward || needed[i];
      if (!reads) continue;
      for (NodeId x : graph_.nodes[i].operands)
        if (again[x.index]) needed[x.index] = true;
    }
    return needed;
  }

  // FLOPs of what is made anew, bytes counted as the FLOPs that take their time.
  double cost_of(const std::vector<NodeId>& chosen) const {
    const std::vector<bool> made = needed(made_again(chosen));
    double cost = 0;
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (made[i]) cost += cost_of(NodeId{i});
    return cost;
  }
  double cost_of(NodeId id) const {
    const Node& node = graph_[id];
    const auto count = static_cast<double>(bound_->count(id));
    if (kind_of(node.op) == OpKind::view) return 0;
    const double stored = saved_[id.index] ? static_cast<double>(bytes(id)) * forming_.target.flops_per_byte : 0;
    if (node.op != Op::contract) return count + stored;
    double depth = 1;
    const ContractAttr& attr = node.as<ContractAttr>();
    for (int k = 0; k < attr.left.size(); ++k)
      if (attr.left[k] >= node.type.rank()) depth *= static_cast<double>(bound_->shape(node.operands[0])[static_cast<size_t>(k)]);
    return 2 * count * depth + stored;
  }
  int64_t bytes(NodeId id) const {
    const DType dtype = graph_[id].type.dtype;
    return bound_->count(id) * bytes_of(dtype == DType::real ? DType::f32 : dtype);
  }

  // ---- the choice

  // Values alike, of equal layers say, in the graph's order.
  struct Class {
    std::vector<NodeId> members;
    size_t chosen = 0;  // the first so many: the later ones are wanted as soon as the backward begins
  };

  std::vector<Class> classes_of(const std::vector<NodeId>& values) const {
    std::map<std::tuple<Op, std::string, std::string, uint32_t, int64_t>, size_t> known;
    std::vector<Class> classes;
    for (NodeId id : values) {
      const Origin& origin = graph_[id].origin;
      std::string module = origin.module.str();
      std::erase_if(module, [](char c) { return c >= '0' && c <= '9'; });
      const auto [at, fresh] =
          known.try_emplace({graph_[id].op, origin.label.str(), std::move(module), origin.location.line, bytes(id)}, classes.size());
      if (fresh) classes.emplace_back();
      classes[at->second].members.push_back(id);
    }
    return classes;
  }

  // Those of the most bytes, at most so many.
  std::vector<Class> largest(std::vector<Class> classes, size_t most) const {
    const auto bytes_of_all = [&](const Class& c) { return bytes(c.members.front()) * static_cast<int64_t>(c.members.size()); };
    std::ranges::stable_sort(classes, std::ranges::greater{}, bytes_of_all);
    if (classes.size() > most) classes.resize(most);
    return classes;
  }

  std::vector<NodeId> chosen() const {
    std::vector<NodeId> all;
    for (const Class& c : classes_) all.insert(all.end(), c.members.begin(), c.members.begin() + static_cast<long>(c.chosen));
    return all;
  }
  // With another number of a class.
  std::vector<NodeId> chosen_with(Class& c, size_t number) const {
    const size_t before = std::exchange(c.chosen, number);
    std::vector<NodeId> all = chosen();
    c.chosen = before;
    return all;
  }
  // More than any limit where another order of sums would change bits.
  int64_t bytes_with(const std::vector<NodeId>& chosen) const {
    const Copies copies = with_copies(chosen);
    const Forming made = formed(*copies.graph, copies);
    return keeps_sums(made.list) ? made.plan->total_bytes : std::numeric_limits<int64_t>::max();
  }

  // Whether each sum is there over the loops of before: they and its dtype fix its order. What else a kernel makes of it may have changed;
  // that is rounded to the dtype of each value, in any kernel.
  bool keeps_sums(const KernelList& list) const {
    std::map<std::string, int64_t> left = sums_;
    for (const GraphKernel& k : list.kernels)
      for (const std::string& sum : sums_of(*k.kernel))
        if (const auto found = left.find(sum); found != left.end()) --found->second;
    return std::ranges::all_of(left, [](const auto& sum) { return sum.second <= 0; });
  }

  // Of short sums, and of short rows and columns, which way the lanes run depends on what else a kernel reads and writes: all of its text.
  static std::vector<std::string> sums_of(const Kernel& kernel) {
    if (kernel.reductions.empty()) return {};
    const auto is_short = [&](const std::vector<AxisId>& axes) { return trips(kernel, bits(axes)) < kLongLoop; };
    const auto& c = kernel.contraction;
    const bool is_small = c && (is_short(c->rows) || is_short(c->columns) || is_short(c->depth));
    const bool is_thin =
        !c && std::ranges::any_of(kernel.stages, [&](const Stage& s) { return !s.reductions.empty() && is_short(s.axes); });
    if (kernel.attention || is_small || is_thin) return {to_string(kernel)};
    const auto loops = [&](const std::vector<AxisId>& axes) {
      std::string text;
      for (AxisId a : axes) text += fmt::format(" {}", kernel.extent(a));
      return text;
    };
    std::vector<std::string> sums;
    const std::string kind = kernel.contraction ? "product" : kernel.part ? "parts" : kernel.sequence ? "sequence" : "";
    for (const Stage& stage : kernel.stages)
      for (uint16_t r : stage.reductions) {
        const Accumulation& sum = kernel.reductions[r];
        sums.push_back(fmt::format("{}{} of{}: {} {}", kind, loops(kernel.outer), loops(stage.axes), static_cast<int>(sum.fold),
                                   to_string(sum.dtype)));
      }
    return sums;
  }

  // Whole classes, each time the one that adds the least for its bytes, where the plan gets smaller by it: what is made again must not
  // need so much that is made again that all of it lies there at once.
  // The bytes that it reaches.
  int64_t choose(int64_t limit) {
    int64_t least = std::numeric_limits<int64_t>::max();
    std::vector<Class*> left;
    for (Class& c : classes_) left.push_back(&c);
    while (least > limit && !left.empty()) {
      const double known = cost_of(chosen());
      const auto ratio = [&](Class* c) {
        const double more = cost_of(chosen_with(*c, c->members.size())) - known;
        return more / static_cast<double>(std::max<int64_t>(bytes(c->members.front()), 1) * static_cast<int64_t>(c->members.size()));
      };
      const auto best = std::ranges::min_element(left, {}, ratio);
      Class& c = **best;
      left.erase(best);
      const int64_t with = bytes_with(chosen_with(c, c.members.size()));
      if (with >= least) continue;
      least = with;
      c.chosen = c.members.size();
    }
    return least;
  }

  // As few of each class as are enough beside the others, those first that take the most time.
  void take_back(int64_t limit) {
    std::vector<std::pair<double, Class*>> by_cost;
    const double whole = cost_of(chosen());
    for (Class& c : classes_)
      if (c.chosen > 0) by_cost.emplace_back(whole - cost_of(chosen_with(c, 0)), &c);
    std::ranges::stable_sort(by_cost, [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [cost, c] : by_cost) {
      size_t few = 0, enough = c->chosen;  // `few` may be enough as well
      while (few < enough) {
        const size_t middle = (few + enough) / 2;
        if (bytes_with(chosen_with(*c, middle)) <= limit)
          enough = middle;
        else
          few = middle + 1;
      }
      c->chosen = enough;
    }
  }

  [[noreturn]] void refuse(int64_t limit) const {
    const int64_t taken = forming_.options.memory_limit->taken;
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("a training step takes {} bytes, and {} where the backward makes again all that it may: more than the "
                                     "limit of {} bytes; a smaller batch takes less",
                                     bytes_ + taken, least_ + taken, limit + taken));
  }

  // ---- the graph

  // Copies stand right before what first reads them, so that they run, and live, as late as can be.
  Copies with_copies(const std::vector<NodeId>& chosen) const {
    const std::vector<bool> again = needed(made_again(chosen));
    std::vector<bool> is_chosen(graph_.size(), false);
    for (NodeId id : chosen) is_chosen[id.index] = true;
    auto out = std::make_unique<Graph>(graph_);
    out->nodes.clear();
    Copies made;
    made.at.assign(graph_.size(), {});
    std::vector<NodeId> copy(graph_.size()), where_read(graph_.size());
    const auto emit = [&](Node node) {
      out->nodes.push_back(std::move(node));
      return NodeId{out->size() - 1};
    };
    // On the way to a chosen value, by kernels of its own.
    const auto copied = [&](const auto& self, NodeId id) -> NodeId {
      if (!again[id.index]) return made.at[id.index];
      if (copy[id.index].valid()) return copy[id.index];
      Node node = graph_[id];
      for (NodeId& x : node.operands) x = self(self, x);
      node.origin.phase = Phase::backward;
      copy[id.index] = emit(std::move(node));
      made.late.push_back(copy[id.index]);
      return copy[id.index];
    };
    // For a reader: a chosen value, or what follows from one as the reader makes it for itself.
    const auto for_reader = [&](const auto& self, NodeId id) -> NodeId {
      if (!again[id.index]) return made.at[id.index];
      if (is_chosen[id.index]) return copied(copied, id);
      if (where_read[id.index].valid()) return where_read[id.index];
      Node node = graph_[id];
      for (NodeId& x : node.operands) x = self(self, x);
      node.origin.phase = Phase::backward;
      where_read[id.index] = emit(std::move(node));
      if (where_read_[id.index]) made.where_read.push_back(where_read[id.index]);
      return where_read[id.index];
    };
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      Node node = graph_.nodes[i];
      const bool late = node.origin.phase != Phase::forward;
      for (NodeId& x : node.operands) x = late ? for_reader(for_reader, x) : made.at[x.index];
      made.at[i] = emit(std::move(node));
    }
    for_each_root(*out, [&](NodeId& id) { id = made.at[id.index]; });
    made.graph = std::move(out);
    return made;
  }

  const Forming& forming_;
  const Graph& graph_;
  const std::span<const SchedulePass> rest_;
  Scheduling options_;
  std::optional<BoundGraph> bound_;
  std::vector<bool> saved_;      // read by the backward where the forward left them
  std::vector<bool> attention_;  // made by its kernels
  std::vector<bool> where_read_;
  std::map<std::string, int64_t> sums_;      // of the step as it is, by their loops
  std::vector<NodeId> candidates_, stored_;  // stored: read by the forward alone
  std::vector<Class> classes_;
  int64_t bytes_ = 0, least_ = 0;
};

}  // namespace

void recompute_within_limit(Forming& f) {
  if (!f.options.memory_limit || f.mode != RunMode::training) return;
  const auto own = std::ranges::find(f.passes, "memory_limit", &SchedulePass::name);
  LimitedStep step(f, f.passes.subspan(static_cast<size_t>(own - f.passes.begin()) + 1));
  std::optional<LimitedStep::Result> limited = step.run(f.options.memory_limit->bytes - f.options.memory_limit->taken);
  if (!limited) return;
  f.recomputation = std::move(limited->made);
  f.move_to(std::move(limited->copies.graph), std::move(limited->copies.at));
  f.late = std::move(limited->copies.late);
  f.where_read = std::move(limited->copies.where_read);
}

}  // namespace einc
