// SPDX-License-Identifier: Apache-2.0
// How long the steps of a device take: launches are one queue and collectives another, each in its order. A start costs nothing; a wait
// holds the launches behind it until its collective is over.
#pragma once
#include <functional>
#include <span>
#include <vector>

#include "runtime/base/collective.h"

namespace einc {

struct DeviceTimeline {
  double compute_s = 0;
  double end_s = 0;               // when both queues are empty
  std::vector<double> exposed_s;  // of each collective: while it went on, no launch did
};

// `compute_s(step)`: seconds of its launches. `collective_s`: by their numbers.
DeviceTimeline device_timeline(std::span<const DeviceStep> steps, const std::function<double(const DeviceStep&)>& compute_s,
                               std::span<const double> collective_s);

}  // namespace einc
