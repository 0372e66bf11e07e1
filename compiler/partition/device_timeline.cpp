// SPDX-License-Identifier: Apache-2.0
// Launches stand still only while the collective that they wait for, or one before it, goes on: so what is exposed adds up to the end
// without the launches.
#include "compiler/partition/device_timeline.h"

#include <algorithm>

namespace einc {

DeviceTimeline device_timeline(std::span<const DeviceStep> steps, const std::function<double(const DeviceStep&)>& compute_s,
                               std::span<const CollectiveTime> collectives) {
  DeviceTimeline line;
  line.exposed_s.resize(collectives.size(), 0), line.saved_s.resize(collectives.size(), 0);
  std::vector<double> begin(collectives.size(), 0), end(collectives.size(), 0);
  std::vector<bool> joined(collectives.size(), false);
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
        line.saved_s[c] = step.joined ? collectives[c].latency : 0;
        link = end[c] = begin[c] + collectives[c].latency + collectives[c].bytes - line.saved_s[c];
        joined[c] = step.joined, started = c + 1;
        break;
      case DeviceAct::wait: {
        size_t last = c;
        while (last + 1 < started && joined[last + 1]) ++last;
        while (passed < c && end[passed] <= now) ++passed;
        for (size_t k = passed; k <= last; ++k) line.exposed_s[k] += std::max(0.0, end[k] - std::max(begin[k], now));
        now = std::max(now, end[last]);
        break;
      }
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
