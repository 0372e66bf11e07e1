// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/memory_limit.h"

#include <fmt/format.h>

#include <algorithm>
#include <limits>
#include <map>
#include <tuple>
#include <utility>

#include "compiler/fuse/remade_step.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

// Each class that is tried costs a plan, and each class of layers' inputs all those plans again: 0.1 s a plan for GPT-2 (Zen 5), whose
// saved values are of 6 classes. What is small frees little.
constexpr size_t kMostClasses = 12, kMostInputs = 4;
// Sets of the largest classes are all looked at, and the most promising planned: with 6 as with 12 the choices of agree/memory_limit are
// within 5 % of the best.
constexpr size_t kMostInSets = 8, kMostSetsPlanned = 6;

// Values alike, of equal layers say, in the graph's order.
struct ValueClass {
  std::vector<NodeId> members;
  size_t chosen = 0;  // the first so many: the later ones are wanted as soon as the backward begins
};

// Layers differ in the numbers of their modules: h.0.mlp, h.1.mlp.
std::vector<ValueClass> classes_of(const RemadeStep& step, const std::vector<NodeId>& values) {
  std::map<std::pair<std::string, int64_t>, size_t> known;
  std::vector<ValueClass> classes;
  for (NodeId id : values) {
    const auto [at, fresh] = known.try_emplace({value_kind(step.graph()[id]), step.bytes(id)}, classes.size());
    if (fresh) classes.emplace_back();
    classes[at->second].members.push_back(id);
  }
  return classes;
}

int64_t bytes_of(const RemadeStep& step, const ValueClass& c) {
  return step.bytes(c.members.front()) * static_cast<int64_t>(c.members.size());
}

// Those of the most bytes, at most so many.
std::vector<ValueClass> largest(const RemadeStep& step, std::vector<ValueClass> classes, size_t most) {
  std::ranges::stable_sort(classes, std::ranges::greater{}, [&](const ValueClass& c) { return bytes_of(step, c); });
  if (classes.size() > most) classes.resize(most);
  return classes;
}

std::vector<NodeId> chosen_of(const std::vector<ValueClass>& classes) {
  std::vector<NodeId> all;
  for (const ValueClass& c : classes) all.insert(all.end(), c.members.begin(), c.members.begin() + static_cast<long>(c.chosen));
  return all;
}

// What iterations of loops make again from what they are handed, as if each were a checkpoint: all of it, or where bits would change then,
// one class after the other, the largest first, as long as they stay and the plan gets smaller.
struct WithinIterations {
  std::vector<NodeId> handed;  // saved all, whether or not the backward reads them
  std::vector<ValueClass> classes;
  int64_t bytes = RemadeStep::kTooMuch;  // of the plan; too much: there are none
};

WithinIterations within_iterations(RemadeStep& step, const std::vector<std::string>& like) {
  const Graph& graph = step.graph();
  std::vector<bool> handed_on(graph.size(), false);
  for (const Node& node : graph.nodes)
    for (const NodeId x : node.operands)
      if (node.origin.phase == Phase::forward && node.origin.loop_context != graph[x].origin.loop_context) handed_on[x.index] = true;
  WithinIterations within;
  for (const NodeId id : step.stored())
    if (handed_on[id.index]) within.handed.push_back(id);
  step.save(within.handed);
  std::vector<NodeId> made, alike;
  for (const NodeId id : step.candidates()) {
    if (handed_on[id.index] || graph[id].origin.loop_context == 0) continue;
    made.push_back(id);
    if (std::ranges::find(like, value_kind(graph[id])) != like.end()) alike.push_back(id);
  }
  const auto whole = [&](const std::vector<NodeId>& values) {
    within.classes = classes_of(step, values);
    for (ValueClass& c : within.classes) c.chosen = c.members.size();
    if (!values.empty()) within.bytes = step.bytes_with(values);
    return within.bytes < RemadeStep::kTooMuch;
  };
  // A like program has told what keeps bits, at the price of a plan for each class: here that is one plan.
  if (whole(alike) || whole(made)) return within;
  within.classes = largest(step, classes_of(step, made), kMostClasses);
  for (ValueClass& c : within.classes) {
    c.chosen = c.members.size();
    const int64_t bytes = step.bytes_with(chosen_of(within.classes));
    if (bytes < within.bytes && bytes < step.bytes_as_is())
      within.bytes = bytes;
    else
      c.chosen = 0;
  }
  return within;
}

class LimitedStep {
 public:
  LimitedStep(RemadeStep& step, const MemoryLimit& limit)
      : step_(step), asked_(limit), limit_(limit.bytes - limit.taken), least_(step.bytes_as_is()) {}

  struct Result {
    RemadeValues::Copies copies;
    Recomputation made;
  };
  Result run() {
    std::vector<NodeId> best_saved;
    std::vector<ValueClass> best;
    double best_cost = std::numeric_limits<double>::infinity();
    // Saving one more value of each layer (its input) may let others be made from that, not from the layer before.
    std::vector<ValueClass> more = largest(step_, classes_of(step_, step_.stored()), kMostInputs);
    more.insert(more.begin(), ValueClass{});
    for (const ValueClass& inputs : more) {
      step_.save(inputs.members);
      classes_ = largest(step_, classes_of(step_, step_.candidates()), kMostClasses);
      const int64_t reached = choose_set() ? limit_ : choose_by_class();
      least_ = std::min(least_, reached);
      if (const double cost = step_.cost(chosen()); reached <= limit_ && cost < best_cost)
        best = classes_, best_saved = inputs.members, best_cost = cost;
      if (!best.empty() && asked_.goal == MemoryGoal::any_choice) break;
    }
    if (best.empty()) {
      // One class of inputs does not free enough: all that iterations hand on, as plans of many devices have it (plan/mesh_advice).
      WithinIterations within = within_iterations(step_, {});
      if (least_ = std::min(least_, within.bytes); within.bytes > limit_) refuse();
      best = std::move(within.classes), best_saved = std::move(within.handed);
    }
    classes_ = std::move(best), step_.save(best_saved);
    if (asked_.goal == MemoryGoal::least_time) take_back();
    const std::vector<NodeId> all = chosen();
    return {step_.copies(all), {all, step_.cost(all)}};
  }

 private:
  std::vector<NodeId> chosen() const { return chosen_of(classes_); }
  // With another number of a class.
  std::vector<NodeId> chosen_with(ValueClass& c, size_t number) const {
    const size_t before = std::exchange(c.chosen, number);
    std::vector<NodeId> all = chosen();
    c.chosen = before;
    return all;
  }

  void take(uint32_t set) {
    for (size_t i = 0; i < classes_.size(); ++i) classes_[i].chosen = (set >> i & 1) != 0 ? classes_[i].members.size() : 0;
  }

  // The greedy choice below compares no classes that free too much with those that free just enough, so this is tried first. The cheapest
  // set of whole classes within the limit, of those that free enough if nothing else is in the way. Of what frees more than
  // is needed a part will do (take_back), at that part of its cost.
  bool choose_set() {
    struct Set {
      uint32_t classes;
      double cost;
    };
    const auto needed = static_cast<double>(step_.bytes_as_is() - limit_);
    std::vector<Set> sets;
    for (uint32_t set = 1; set < 1U << std::min(classes_.size(), kMostInSets); ++set) {
      take(set);
      double freed = 0;
      for (const ValueClass& c : classes_)
        if (c.chosen > 0) freed += static_cast<double>(bytes_of(step_, c));
      if (freed >= needed) sets.push_back({set, step_.cost(chosen()) * needed / freed});
    }
    std::ranges::stable_sort(sets, {}, &Set::cost);
    if (sets.size() > kMostSetsPlanned) sets.resize(kMostSetsPlanned);
    for (const Set& set : sets) {
      take(set.classes);
      if (step_.bytes_with(chosen()) <= limit_) return true;
    }
    take(0);
    return false;
  }

  // Whole classes, each time the one that adds the least for its bytes, where the plan gets smaller by it: what is made again must not
  // need so much that is made again that all of it lies there at once. The first one is compared with nothing, since a class of inputs that
  // are saved as well may pay only with the second. The result: the bytes reached.
  int64_t choose_by_class() {
    int64_t least = RemadeStep::kTooMuch;
    std::vector<ValueClass*> left;
    for (ValueClass& c : classes_) left.push_back(&c);
    while (least > limit_ && !left.empty()) {
      const double known = step_.cost(chosen());
      const auto best = std::ranges::min_element(left, {}, [&](ValueClass* c) {
        return (step_.cost(chosen_with(*c, c->members.size())) - known) / static_cast<double>(std::max<int64_t>(bytes_of(step_, *c), 1));
      });
      change(**best, least);
      left.erase(best);
    }
    // One more look at each that was taken, beside those that were taken after it.
    for (ValueClass& c : classes_)
      if (least > limit_ && c.chosen > 0) change(c, least);
    return least;
  }

  // Takes a class, or gives it up, where the plan gets smaller by it.
  void change(ValueClass& c, int64_t& least) const {
    const size_t other = c.chosen == 0 ? c.members.size() : 0;
    const int64_t with = step_.bytes_with(chosen_with(c, other));
    if (with >= least) return;
    least = with;
    c.chosen = other;
  }

  // As few of each class as are enough beside the others, those first that take the most time.
  void take_back() {
    std::vector<std::pair<double, ValueClass*>> by_cost;
    const double whole = step_.cost(chosen());
    for (ValueClass& c : classes_)
      if (c.chosen > 0) by_cost.emplace_back(whole - step_.cost(chosen_with(c, 0)), &c);
    std::ranges::stable_sort(by_cost, [](const auto& a, const auto& b) { return a.first > b.first; });
    for (auto& [cost, c] : by_cost) {
      size_t few = 0, enough = c->chosen;  // `few` may be enough as well
      while (few < enough) {
        const size_t middle = (few + enough) / 2;
        if (step_.bytes_with(chosen_with(*c, middle)) <= limit_)
          enough = middle;
        else
          few = middle + 1;
      }
      c->chosen = enough;
    }
  }

  [[noreturn]] void refuse() const {
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("a training step takes {} bytes, and {} bytes if the backward recomputes all that it can: more than "
                                     "the limit of {} bytes; a smaller batch takes less",
                                     step_.bytes_as_is() + asked_.taken, least_ + asked_.taken, asked_.bytes));
  }

  RemadeStep& step_;
  const MemoryLimit asked_;
  const int64_t limit_;
  std::vector<ValueClass> classes_;
  int64_t least_;
};

}  // namespace

std::string value_kind(const Node& node) {
  const Origin& origin = node.origin;
  std::string module = origin.module.str();
  std::erase_if(module, [](char c) { return c >= '0' && c <= '9'; });
  return fmt::format("{} {} {} {}", to_string(node.op), origin.label.str(), module, origin.location.line);
}

void recompute_within_limit(Forming& f) {
  if (!f.options.memory_limit || (f.mode != RunMode::training && !f.options.memory_limit->of_device)) return;
  const MemoryLimit& limit = *f.options.memory_limit;
  const auto own = std::ranges::find(f.passes, "memory_limit", &SchedulePass::name);
  RemadeStep step(f, f.passes.subspan(static_cast<size_t>(own - f.passes.begin()) + 1));
  LimitedStep::Result limited;
  if (limit.goal == MemoryGoal::whole_iterations) {
    limited.made.values = chosen_of(within_iterations(step, limit.like).classes);
    if (limited.made.values.empty()) return;
    limited.copies = step.copies(limited.made.values);
  } else {
    if (step.bytes_as_is() <= limit.bytes - limit.taken) return;
    limited = LimitedStep(step, limit).run();
  }
  f.recomputation = std::move(limited.made);
  f.move_to(std::move(limited.copies.graph), std::move(limited.copies.at));
  f.late = std::move(limited.copies.late);
  f.where_read = std::move(limited.copies.where_read);
  f.twice = std::move(limited.copies.twice);
}

}  // namespace einc
