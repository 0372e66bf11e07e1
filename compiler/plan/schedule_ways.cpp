// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/schedule_ways.h"

#include "runtime/base/on_threads.h"

namespace einc {

WaySchedulers::WaySchedulers(const SamplePrograms& programs, const PlacedWays& placed, const WayPlans& plans, const Device& device)
    : programs_(programs), placed_(placed), plans_(plans), device_(device), threads_(way_threads()) {}

std::unique_ptr<WaySchedulers::One> WaySchedulers::take() {
  {
    const std::lock_guard lock(mutex_);
    if (!idle_.empty()) {
      std::unique_ptr<One> one = std::move(idle_.back());
      idle_.pop_back();
      return one;
    }
  }
  return std::make_unique<One>(*this);
}

std::vector<std::optional<ScheduledWay>> WaySchedulers::schedule(std::span<const MeshWay> ways) {
  std::vector<std::optional<ScheduledWay>> scheduled(ways.size());
  on_threads(ways.size(), static_cast<int>(threads_), [&](size_t i) {
    std::unique_ptr<One> one = take();
    scheduled[i] = one->scheduler.schedule(ways[i]);
    const std::lock_guard lock(mutex_);
    idle_.push_back(std::move(one));
  });
  return scheduled;
}

}  // namespace einc
