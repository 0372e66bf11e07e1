// SPDX-License-Identifier: Apache-2.0
#include "compiler/partition/pipeline_timeline.h"

#include <algorithm>
#include <utility>

#include "runtime/base/check.h"

namespace einc {
namespace {

class Simulation {
 public:
  Simulation(std::span<const StageTimes> stages, std::span<const StageLink> links, int64_t microbatches)
      : stages_(stages), links_to_(stages.size()), microbatches_(microbatches), states_(stages.size()) {
    for (size_t s = 0; s < stages.size(); ++s) states_[s].now = stages[s].begin;
    for (const StageLink& link : links) links_to_[static_cast<size_t>(link.to)].push_back(link);
  }

  PipelineTimeline run() {
    for (bool moved = true; std::exchange(moved, false);)
      for (int s = 0; s < static_cast<int>(states_.size()); ++s)
        while (advance(s)) moved = true;
    PipelineTimeline line;
    for (size_t s = 0; s < states_.size(); ++s) {
      EINC_CHECK(done(states_[s]), "stage {} waits for ever", s);
      line.end_s = std::max(line.end_s, states_[s].now + stages_[s].end);
    }
    for (const StageTimes& t : stages_)
      line.idle_s.push_back(line.end_s - t.begin - t.end - static_cast<double>(microbatches_) * (t.forward + t.backward));
    return line;
  }

 private:
  struct State {
    double now = 0;
    std::vector<double> forwards, backwards;  // ends, by microbatch
  };
  bool done(const State& state) const { return static_cast<int64_t>(state.backwards.size()) == microbatches_; }

  // The next forward or backward of a stage, if what it reads is on its way.
  bool advance(int s) {
    State& state = states_[static_cast<size_t>(s)];
    if (done(state)) return false;
    const auto forwards = static_cast<int64_t>(state.forwards.size()), backwards = static_cast<int64_t>(state.backwards.size());
    const int64_t held = microbatches_held(s, static_cast<int64_t>(states_.size()), microbatches_);
    const bool forward = forwards < microbatches_ && forwards - backwards < held;
    const auto number = static_cast<size_t>(forward ? forwards : backwards);
    double start = state.now;
    for (const StageLink& link : links_to_[static_cast<size_t>(s)]) {
      if ((link.from < s) != forward) continue;
      const State& other = states_[static_cast<size_t>(link.from)];
      const std::vector<double>& ends = forward ? other.forwards : other.backwards;
      if (number >= ends.size()) return false;
      start = std::max(start, ends[number] + link.seconds);
    }
    const StageTimes& times = stages_[static_cast<size_t>(s)];
    state.now = start + (forward ? times.forward : times.backward);
    (forward ? state.forwards : state.backwards).push_back(state.now);
    return true;
  }

  const std::span<const StageTimes> stages_;
  std::vector<std::vector<StageLink>> links_to_;  // by stage
  const int64_t microbatches_;
  std::vector<State> states_;
};

}  // namespace

int64_t microbatches_held(int64_t stage, int64_t stages, int64_t microbatches) { return std::min(microbatches, stages - stage); }

PipelineTimeline pipeline_timeline(std::span<const StageTimes> stages, std::span<const StageLink> links, int64_t microbatches) {
  return Simulation(stages, links, microbatches).run();
}

}  // namespace einc
