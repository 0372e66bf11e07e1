// SPDX-License-Identifier: Apache-2.0
// How long one device of a mesh computes in a step: the stages between its collectives, each as planned for the device.
#pragma once
#include <optional>

#include "compiler/cost/device.h"
#include "compiler/fuse/planned_step.h"
#include "compiler/partition/partition.h"

namespace einc {

// Seconds of all its launches, one after the other. Nothing where a device cannot carry its part out (partition/localize), or has no rate
// for a number format. Kernels join no nodes across a collective, as they don't when the program runs.
std::optional<double> mesh_step(const Partitioned& partitioned, const Bindings& given, const PlanStep& plan, const Device& device);

}  // namespace einc
