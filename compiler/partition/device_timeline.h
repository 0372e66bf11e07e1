// SPDX-License-Identifier: Apache-2.0
// How long the steps of a device take: launches are one queue and collectives another, each in its order. A start costs nothing; a wait
// holds the launches behind it until its collective is over, with all that goes in one move with it; of a move only the first has a
// latency.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "runtime/base/collective.h"

namespace einc {

// Of a collective alone, seconds: until the first byte has gone its way, and while its bytes go over the link.
struct CollectiveTime {
  double latency = 0, bytes = 0;
};

struct DeviceTimeline {
  double compute_s = 0;
  double end_s = 0;               // when both queues are empty
  std::vector<double> exposed_s;  // of each collective: while it went on, no launch did
  std::vector<double> saved_s;    // of each collective: its latency, where it goes in one move with the one before
};

// `compute_s(step)`: seconds of its launches. `collectives`: by their numbers.
DeviceTimeline device_timeline(std::span<const DeviceStep> steps, const std::function<double(const DeviceStep&)>& compute_s,
                               std::span<const CollectiveTime> collectives);

}  // namespace einc
