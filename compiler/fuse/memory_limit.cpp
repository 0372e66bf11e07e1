#include "compiler/fuse/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "compiler/fuse/kept_sums.h"
#include "compiler/fuse/remade_values.h"
#include "compiler/fuse/schedule_passes.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

// Each class that is tried costs a plan, and each class of layers' inputs all those plans again: 0.1 s a plan for GPT-2 (Zen 5), whose
// saved values are of 6 classes. What is small frees little.
constexpr size_t kMostClasses = 12, kMostInputs = 4;
constexpr int64_t kTooMuch = std::numeric_limits<int64_t>::max();

// Values alike, of equal layers say, in the graph's order.
struct ValueClass {
  std::vector<NodeId> members;
  size_t chosen = 0;  // the first so many: the later ones are wanted as soon as the backward begins
};

class LimitedStep {
 public:
  LimitedStep(const Forming& forming, std::span<const SchedulePass> rest)
      : forming_(forming),
        graph_(forming.graph()),
        rest_(rest),
        options_(unlimited(forming.options)),
        whole_(formed(graph_, {})),
        bound_(forming.bind()),
        sums_(whole_.list),
        values_(bound_, places(), forming.target.flops_per_byte),
        least_(whole_.plan->total_bytes) {}

  bool fits(int64_t limit) const { return whole_.plan->total_bytes <= limit; }

  struct Result {
    RemadeValues::Copies copies;
    Recomputation made;
  };
  Result run(int64_t limit) {
    find_candidates();
    const std::vector<bool> saved = values_.saved();
    std::vector<bool> best_saved;
    std::vector<ValueClass> best;
    double best_cost = std::numeric_limits<double>::infinity();
    // Saving one more value of each layer (its input) may let others be made from that, not from the layer before.
    std::vector<ValueClass> more = largest(classes_of(stored_), kMostInputs);
    more.insert(more.begin(), ValueClass{});
    for (const ValueClass& inputs : more) {
      std::vector<bool> with_inputs = saved;
      for (NodeId id : inputs.members) with_inputs[id.index] = true;
      values_.save_just(with_inputs);
      classes_ = largest(classes_of(candidates_), kMostClasses);
      const int64_t reached = choose(limit);
      least_ = std::min(least_, reached);
      if (const double cost = values_.cost(chosen()); reached <= limit && cost < best_cost)
        best = classes_, best_saved = std::move(with_inputs), best_cost = cost;
    }
    if (best.empty()) refuse(limit);
    classes_ = std::move(best), values_.save_just(std::move(best_saved));
    take_back(limit);
    const std::vector<NodeId> all = chosen();
    return {values_.copies(all), {all, values_.cost(all)}};
  }

 private:
  // ---- the step as it is

  static Scheduling unlimited(Scheduling options) {
    options.memory_limit.reset();
    options.observe = nullptr;
    return options;
  }

  Forming formed(const Graph& graph, const RemadeValues::Copies& copies) const {
    Forming made{graph, forming_.dims, forming_.mode, options_, forming_.target};
    made.late = copies.late, made.where_read = copies.where_read;
    run_passes(made, rest_);
    return made;
  }

  static bool runs_forward(const Forming& forming, const GraphKernel& k) {
    return std::ranges::any_of(k.group.members, [&](NodeId id) { return (*forming.bound)[id].origin.phase == Phase::forward; });
  }

  // Nodes given by those that kernels are formed of; invalid for what passes have added.
  std::vector<NodeId> given() const {
    std::vector<NodeId> given(whole_.bound->graph.size());
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (const NodeId to = whole_.place_of(NodeId{i}); to.valid()) given[to.index] = NodeId{i};
    return given;
  }

  RemadeValues::Places places() {
    const std::vector<NodeId> of = given();
    RemadeValues::Places places;
    for (auto* list : {&places.saved, &places.fixed, &places.where_read, &read_by_attention_}) list->assign(graph_.size(), false);
    for (uint32_t i = 0; i < graph_.size(); ++i)
      if (const NodeId to = whole_.place_of(NodeId{i}); to.valid()) places.where_read[i] = whole_.values->is_made_where_read(to);
    for (const GraphKernel& k : whole_.list.kernels) {
      if (k.kernel->attention)
        for (NodeId id : k.group.members)
          if (of[id.index].valid()) places.fixed[of[id.index].index] = true;
      if (runs_forward(whole_, k)) continue;
      for (NodeId buffer : k.buffers) {
        const NodeId id = buffer.valid() ? of[buffer.index] : NodeId{};
        if (!id.valid() || is_source(graph_[id].op) || graph_[id].origin.phase != Phase::forward) continue;
        places.saved[id.index] = true;
        if (k.kernel->attention) read_by_attention_[id.index] = true;
      }
    }
    return places;
  }

  void find_candidates() {
    const std::vector<NodeId> of = given();
    std::vector<bool> root(graph_.size(), false);
    for (NodeId id : whole_.roots)
      if (of[id.index].valid()) root[of[id.index].index] = true;
    for (uint32_t i = 0; i < graph_.size(); ++i) {
      const NodeId id{i}, to = whole_.place_of(id);
      if (graph_[id].origin.phase != Phase::forward || !to.valid() || !whole_.list.in_memory[to.index]) continue;
      if (!values_.saved()[i]) stored_.push_back(id);
      // The backward's kernel of attention makes its scores again from its operands: of copies it would be another kernel.
      else if (!read_by_attention_[i] && !root[i] && values_.may_be_made(id))
        candidates_.push_back(id);
    }
  }

  // ---- the choice

  // Layers differ in the numbers of their modules: h.0.mlp, h.1.mlp.
  std::vector<ValueClass> classes_of(const std::vector<NodeId>& values) const {
    std::map<std::tuple<Op, std::string, std::string, uint32_t, int64_t>, size_t> known;
    std::vector<ValueClass> classes;
    for (NodeId id : values) {
      const Origin& origin = graph_[id].origin;
      std::string module = origin.module.str();
      std::erase_if(module, [](char c) { return c >= '0' && c <= '9'; });
      const auto [at, fresh] = known.try_emplace(
          {graph_[id].op, origin.label.str(), std::move(module), origin.location.line, values_.bytes(id)}, classes.size());
      if (fresh) classes.emplace_back();
      classes[at->second].members.push_back(id);
    }
    return classes;
  }

  int64_t bytes(const ValueClass& c) const { return values_.bytes(c.members.front()) * static_cast<int64_t>(c.members.size()); }

  // Those of the most bytes, at most so many.
  std::vector<ValueClass> largest(std::vector<ValueClass> classes, size_t most) const {
    std::ranges::stable_sort(classes, std::ranges::greater{}, [&](const ValueClass& c) { return bytes(c); });
    if (classes.size() > most) classes.resize(most);
    return classes;
  }

  std::vector<NodeId> chosen() const {
    std::vector<NodeId> all;
    for (const ValueClass& c : classes_) all.insert(all.end(), c.members.begin(), c.members.begin() + static_cast<long>(c.chosen));
    return all;
  }
  // With another number of a class.
  std::vector<NodeId> chosen_with(ValueClass& c, size_t number) const {
    const size_t before = std::exchange(c.chosen, number);
    std::vector<NodeId> all = chosen();
    c.chosen = before;
    return all;
  }

  // Of the plan; too much where another order of sums would change bits.
  int64_t bytes_with(const std::vector<NodeId>& chosen) const {
    const RemadeValues::Copies copies = values_.copies(chosen);
    const Forming made = formed(*copies.graph, copies);
    return sums_.are_in(made.list) ? made.plan->total_bytes : kTooMuch;
  }

  // Whole classes, each time the one that adds the least for its bytes, where the plan gets smaller by it: what is made again must not
  // need so much that is made again that all of it lies there at once. The first one is compared with nothing, since a class of inputs that
  // are saved as well may pay only with the second. The result: the bytes reached.
  int64_t choose(int64_t limit) {
    int64_t least = kTooMuch;
    std::vector<ValueClass*> left;
    for (ValueClass& c : classes_) left.push_back(&c);
    while (least > limit && !left.empty()) {
      const double known = values_.cost(chosen());
      const auto best = std::ranges::min_element(left, {}, [&](ValueClass* c) {
        return (values_.cost(chosen_with(*c, c->members.size())) - known) / static_cast<double>(std::max<int64_t>(bytes(*c), 1));
      });
      ValueClass& c = **best;
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
    std::vector<std::pair<double, ValueClass*>> by_cost;
    const double whole = values_.cost(chosen());
    for (ValueClass& c : classes_)
      if (c.chosen > 0) by_cost.emplace_back(whole - values_.cost(chosen_with(c, 0)), &c);
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
                                     whole_.plan->total_bytes + taken, least_ + taken, limit + taken));
  }

  const Forming& forming_;
  const Graph& graph_;
  const std::span<const SchedulePass> rest_;
  const Scheduling options_;
  const Forming whole_;  // the step as it is
  const BoundGraph bound_;
  const KeptSums sums_;
  std::vector<bool> read_by_attention_;
  RemadeValues values_;
  std::vector<NodeId> candidates_, stored_;  // stored: read by the forward alone
  std::vector<ValueClass> classes_;
  int64_t least_;
};

}  // namespace

void recompute_within_limit(Forming& f) {
  if (!f.options.memory_limit || f.mode != RunMode::training) return;
  const int64_t limit = f.options.memory_limit->bytes - f.options.memory_limit->taken;
  const auto own = std::ranges::find(f.passes, "memory_limit", &SchedulePass::name);
  LimitedStep step(f, f.passes.subspan(static_cast<size_t>(own - f.passes.begin()) + 1));
  if (step.fits(limit)) return;
  LimitedStep::Result limited = step.run(limit);
  f.recomputation = std::move(limited.made);
  f.move_to(std::move(limited.copies.graph), std::move(limited.copies.at));
  f.late = std::move(limited.copies.late);
  f.where_read = std::move(limited.copies.where_read);
}

}  // namespace einc
