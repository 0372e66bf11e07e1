// SPDX-License-Identifier: Apache-2.0
// Ways whose keys go round a ring (context/ring_attention.h) beside those that gather them: which is faster and which takes less memory
// follows from their schedules alone, so that each way with a split sequence is scheduled both ways.
#pragma once
#include <optional>
#include <vector>

#include "compiler/plan/schedule_ways.h"

namespace einc {

class RingWays {
 public:
  // `asked`: `shard keys over ...` may be asked for, which a program with an axis of that name means otherwise.
  RingWays(SamplePrograms& programs, bool asked) : programs_(programs), asked_(asked) {}

  // As WaySchedulers::schedule: of each the better one, which fits, is faster, or as fast and smaller.
  std::vector<std::optional<ScheduledWay>> schedule(WaySchedulers& schedulers, std::vector<MeshWay> ways);

 private:
  std::optional<MeshWay> in_a_ring(const MeshWay& way);

  SamplePrograms& programs_;
  const bool asked_;
};

}  // namespace einc
