// SPDX-License-Identifier: Apache-2.0
// How long a step takes whose microbatches pass through stages: one forward, one backward (Narayanan et al. 2021, "Efficient Large-Scale
// Language Model Training on GPU Clusters Using Megatron-LM", PipeDream-Flush). A stage begins with as many forwards as there are stages
// from it to the end, then takes turns, so that it holds no more microbatches than that. Sends go on beside the work of both stages.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace einc {

// Seconds of a stage.
struct StageTimes {
  double forward = 0, backward = 0;  // of a microbatch
  double begin = 0, end = 0;         // once a step: before the first forward, behind the last backward
};

// What a stage waits for of another for each microbatch: from a lower stage its forward, from a higher one its backward.
struct StageLink {
  int from = 0, to = 0;
  double seconds = 0;
};

struct PipelineTimeline {
  std::vector<double> idle_s;  // by stage, until the step is over everywhere
  double end_s = 0;
};

// Microbatches of which a stage holds what its backward needs, at most.
int64_t microbatches_held(int64_t stage, int64_t stages, int64_t microbatches);

PipelineTimeline pipeline_timeline(std::span<const StageTimes> stages, std::span<const StageLink> links, int64_t microbatches);

}  // namespace einc
