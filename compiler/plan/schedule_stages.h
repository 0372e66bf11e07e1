// SPDX-License-Identifier: Apache-2.0
// A way with stages as its report has it (report/stage_steps.h), told by few: a first, a last and one between, each of one to four
// iterations, and one between of one more, stand for any number of stages with any number of iterations. In time with one another all
// stages are there.
#pragma once
#include "compiler/plan/schedule_way.h"

namespace einc {

struct StageSample {
  const PartitionedProgram& program;  // of four stages' iterations
  const StepFormulas& formulas;
  const WayPlans& plans;
  const Device& device;
  int64_t iterations;  // of each of these stages
  double further;      // bytes of params and states that the program has beyond these iterations
  double margin;       // of what is held (fitted)
};

// Nothing where a device cannot carry its part out, or has no rate for a number format; and where a value of each microbatch goes to
// several stages, which few do not tell of.
std::optional<ScheduledWay> schedule_stages(const StageSample& sample, const MeshWay& way, int64_t batch, int64_t iterations);

}  // namespace einc
