// SPDX-License-Identifier: Apache-2.0
// How long one device of a mesh computes in a step: the stages between its collectives, each as planned for the device.
#pragma once
#include <optional>

#include "compiler/cost/device.h"
#include "compiler/fuse/planned_step.h"
#include "compiler/partition/partition.h"

namespace einc {

struct MeshStep {
  double compute_s = 0;  // of all launches, one after the other
  int64_t stages = 0, launches = 0;
};

// Nothing where a device cannot carry its part out (partition/localize), or has no rate for a number format. Kernels join no nodes across a
// collective, as they don't when the program runs.
std::optional<MeshStep> mesh_step(const Partitioned& partitioned, const Bindings& given, const PlanStep& plan, const Device& device);

}  // namespace einc
