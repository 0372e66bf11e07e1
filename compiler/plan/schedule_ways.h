// SPDX-License-Identifier: Apache-2.0
// Ways scheduled on several threads: each has programs of its own to put meshes into, and all share the plans of graphs that are alike.
#pragma once
#include <memory>
#include <mutex>
#include <span>
#include <vector>

#include "compiler/plan/schedule_way.h"

namespace einc {

class WaySchedulers {
 public:
  // All of it outlives this. On as many threads as there are processors, up to a few.
  WaySchedulers(const SamplePrograms& programs, const PlacedWays& placed, const WayPlans& plans, const Device& device);

  size_t threads() const { return threads_; }
  // In the order of the ways, whatever the number of threads; of each, what WayScheduler says.
  std::vector<std::optional<ScheduledWay>> schedule(std::span<const MeshWay> ways);

 private:
  struct One {
    SamplePrograms programs;
    WayScheduler scheduler;
    explicit One(const WaySchedulers& all) : programs(all.programs_), scheduler(programs, all.placed_, all.plans_, all.device_) {}
  };
  std::unique_ptr<One> take();

  const SamplePrograms& programs_;
  const PlacedWays& placed_;
  const WayPlans& plans_;
  const Device& device_;
  const size_t threads_;
  std::mutex mutex_;
  std::vector<std::unique_ptr<One>> idle_;
};

}  // namespace einc
