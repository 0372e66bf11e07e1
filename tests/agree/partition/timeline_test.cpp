// SPDX-License-Identifier: Apache-2.0
// Two queues by hand, and beside a clock that advances in small ticks for random steps.
#include <doctest/doctest.h>

#include <algorithm>
#include <numeric>
#include <random>

#include "compiler/partition/device_timeline.h"

using namespace einc;

namespace {

constexpr DeviceStep compute(uint32_t seconds) { return {DeviceAct::compute, 0, 0, seconds}; }
constexpr DeviceStep start(uint32_t n) { return {DeviceAct::start, n}; }
constexpr DeviceStep joined(uint32_t n) { return {DeviceAct::start, n, 0, 0, true}; }
constexpr DeviceStep wait(uint32_t n) { return {DeviceAct::wait, n}; }
constexpr DeviceStep agree() { return {DeviceAct::agree, kNoCollective}; }

double seconds_of(const DeviceStep& step) { return step.last - step.first; }

// Whole seconds, one after another: what each queue does in it.
DeviceTimeline by_ticks(const std::vector<DeviceStep>& steps, const std::vector<CollectiveTime>& collectives) {
  DeviceTimeline line;
  line.exposed_s.assign(collectives.size(), 0);
  std::vector<double> left(collectives.size());
  std::vector<uint32_t> last(collectives.size());  // of its move
  std::iota(last.begin(), last.end(), 0U);
  for (const DeviceStep& step : steps)
    if (step.act == DeviceAct::start)
      left[step.index] = collectives[step.index].bytes + (step.joined ? 0 : collectives[step.index].latency);
  for (const DeviceStep& step : steps)
    if (step.joined)
      for (uint32_t n = 0; n < step.index; ++n)
        if (last[n] + 1 == step.index) last[n] = step.index;
  size_t at = 0, started = 0, done = 0;
  double busy = 0;  // what is left of the launches in progress
  for (;;) {
    while (busy == 0 && at < steps.size()) {
      if (steps[at].act == DeviceAct::wait && done <= last[steps[at].index]) break;
      if (steps[at].act == DeviceAct::agree && done < started) break;
      if (steps[at].act == DeviceAct::start) ++started;
      if (steps[at].act == DeviceAct::compute) busy = seconds_of(steps[at]);
      ++at;
    }
    if (busy == 0 && done == started) return line;
    if (busy == 0) ++line.exposed_s[done];
    if (busy > 0) --busy, ++line.compute_s;
    if (done < started && --left[done] == 0) ++done;
    ++line.end_s;
  }
}

}  // namespace

TEST_CASE("timeline: launches wait for collectives, which wait for those before them") {
  const std::vector<DeviceStep> steps{compute(3), start(0), compute(2), start(1),   wait(1),
                                      compute(1), wait(0),  start(2),   compute(1), wait(2)};
  const DeviceTimeline line = device_timeline(steps, seconds_of, std::vector<CollectiveTime>{{1, 3}, {0, 1}, {2, 1}});
  CHECK(line.compute_s == 7);
  CHECK(line.exposed_s == std::vector<double>{2, 1, 2});
  CHECK(line.end_s == 12);
}

// The first of them is over when all are.
TEST_CASE("timeline: collectives of one move have one latency") {
  const std::vector<DeviceStep> steps{compute(1), start(0), joined(1), joined(2), compute(2), wait(0), compute(1), wait(1), wait(2)};
  const DeviceTimeline line = device_timeline(steps, seconds_of, std::vector<CollectiveTime>{{4, 1}, {4, 1}, {4, 2}});
  CHECK(line.exposed_s == std::vector<double>{3, 1, 2});
  CHECK(line.end_s == 10);
}

TEST_CASE("timeline: as a clock has it") {
  std::mt19937 random(7);
  for (int round = 0; round < 200; ++round) {
    std::vector<DeviceStep> steps;
    std::vector<CollectiveTime> times;
    std::vector<uint32_t> open;
    for (int i = 0; i < 40; ++i) {
      if (random() % 12 == 0) steps.push_back(agree());
      if (const auto act = random() % 3; act == 0) {
        steps.push_back(compute(1 + random() % 5));
      } else if (act == 1) {
        open.push_back(static_cast<uint32_t>(times.size()));
        const bool follows = !steps.empty() && steps.back().act == DeviceAct::start && random() % 2 == 0;
        steps.push_back(follows ? joined(open.back()) : start(open.back()));
        times.push_back({static_cast<double>(random() % 3), 1 + static_cast<double>(random() % 4)});
      } else if (!open.empty()) {
        const size_t one = random() % open.size();
        steps.push_back(wait(open[one]));
        open.erase(open.begin() + static_cast<std::ptrdiff_t>(one));
      }
    }
    for (const uint32_t n : open) steps.push_back(wait(n));
    const DeviceTimeline line = device_timeline(steps, seconds_of, times), wanted = by_ticks(steps, times);
    CAPTURE(round);
    CHECK(line.compute_s == wanted.compute_s);
    CHECK(line.end_s == wanted.end_s);
    CHECK(line.exposed_s == wanted.exposed_s);
    CHECK(std::accumulate(line.exposed_s.begin(), line.exposed_s.end(), line.compute_s) == line.end_s);
  }
}
