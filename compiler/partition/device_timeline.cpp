// SPDX-License-Identifier: Apache-2.0
// Launches stand still only while the collective that they wait for, or one before it, goes on: so what is exposed adds up to the end
// without the launches.
#include "compiler/partition/device_timeline.h"

#include <algorithm>

namespace einc {

DeviceTimeline device_timeline(std::span<const DeviceStep> steps, const std::function<double(const DeviceStep&)>& compute_s,
                               std::span<const double> collective_s) {
  DeviceTimeline line;
  line.exposed_s.resize(collective_s.size(), 0);
  std::vector<double> begin(collective_s.size(), 0), end(collective_s.size(), 0);
  double now = 0, link = 0;  // when the queues are empty, of what they have so far
  size_t passed = 0;         // collectives that were over when launches last stood still
  size_t started = 0;
  for (const DeviceStep& step : steps) {
    const size_t c = step.index;
    switch (step.act) {
      case DeviceAct::compute: {
        const double seconds = compute_s(step);
        line.compute_s += seconds;
        now += seconds;
        break;
      }
      case DeviceAct::start:
        begin[c] = std::max(now, link);
        link = end[c] = begin[c] + collective_s[c];
        started = c + 1;
        break;
      case DeviceAct::wait:
        while (passed < c && end[passed] <= now) ++passed;
        for (size_t k = passed; k <= c; ++k) line.exposed_s[k] += std::max(0.0, end[k] - std::max(begin[k], now));
        now = std::max(now, end[c]);
        break;
      case DeviceAct::agree:
        for (size_t k = passed; k < started; ++k) line.exposed_s[k] += std::max(0.0, end[k] - std::max(begin[k], now));
        now = std::max(now, link), passed = started;
        break;
    }
  }
  line.end_s = std::max(now, link);
  return line;
}

}  // namespace einc
