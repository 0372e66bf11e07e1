// SPDX-License-Identifier: Apache-2.0
// A way's step by its formulas: of one device, or of the devices of a pipeline's stages, whose first, last and longest other one stand for
// all. It fits where all of them do.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "compiler/plan/step_formulas.h"

namespace einc {

// What formulas of a way's own partition are evaluated at, by kind of stage; without stages one. `iterations`: of the loop that stages
// share.
std::vector<WaySizes> sizes_of(const MeshWay& way, int64_t batch, int64_t iterations);

// Stage `stage` of a way's pipeline.
StageShare share_of(const WayStages& stages, int64_t stage, int64_t iterations, int64_t microbatches);

class StepEstimate {
 public:
  StepEstimate(const StepFormulas& formulas, const MeshWay& way, int64_t batch, int64_t iterations, const Device& device);

  // Of the stage that takes the most.
  const HeldRange& held() const { return held_; }
  // A step that fits so many bytes; nothing: none does.
  struct Fit {
    HeldBytes held;    // of the stage that takes the most
    double again = 0;  // seconds of what the backward makes again, of the stage that makes the most
  };
  std::optional<Fit> fit(double bytes);
  // Of the step as it is, or as it was last fitted. A run hides what goes over axes of the data (sums of gradients, gathered params) behind
  // work as far as that lasts, and little of what goes over others, which the next layer waits for. `order`: of the way's axes.
  StepSeconds seconds(std::span<const int> order);

 private:
  struct Stage {
    WaySizes sizes;
    HeldRange held;
    double again = 0;
    MicroAmount work;
    SentByAxis sent;
  };
  StepSeconds whole_seconds(std::span<const int> order) const;
  StepSeconds pipeline_seconds(std::span<const int> order) const;
  double exchange_seconds() const;

  const StepFormulas& formulas_;
  const MeshWay& way_;
  const Device& device_;
  std::vector<Stage> stages_;
  HeldRange held_;
  bool has_work_ = false;  // and what is sent
};

}  // namespace einc
