// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/remembered_plans.h"

#include <mutex>
#include <optional>
#include <unordered_map>

#include "compiler/report/like_graphs.h"

namespace einc {
namespace {

struct Remembered {
  std::shared_ptr<const Graph> graph;  // that the plan refers to
  Bindings dims;
  RunMode mode;
  PlannedStep step;
};

// Two threads may make the same plan at once.
class RememberedPlans {
 public:
  std::optional<PlannedStep> find(size_t hash, const Graph& graph, const Bindings& dims, RunMode mode) {
    const std::lock_guard lock(mutex_);
    for (const Remembered& r : plans_[hash])
      if (r.mode == mode && r.dims == dims && plan_alike(*r.graph, graph)) return r.step;
    return std::nullopt;
  }
  PlannedStep add(size_t hash, Remembered made) {
    const std::lock_guard lock(mutex_);
    return plans_[hash].emplace_back(std::move(made)).step;
  }

 private:
  std::mutex mutex_;
  std::unordered_map<size_t, std::vector<Remembered>> plans_;
};

}  // namespace

PlanStep remembered(const PlanStep& plan, const std::vector<Name>& counts) {
  auto all = std::make_shared<RememberedPlans>();
  return [=](const Graph& graph, const Bindings& given, RunMode mode, const CountDevice& of_device) {
    Bindings dims = given;
    for (const Name count : counts) dims.erase(count);
    const size_t hash = plan_hash(graph);
    if (const auto known = all->find(hash, graph, dims, mode)) return *known;
    auto kept = std::make_shared<const Graph>(graph);
    return all->add(hash, {kept, dims, mode, plan(*kept, given, mode, of_device)});
  };
}

}  // namespace einc
