// SPDX-License-Identifier: Apache-2.0
// How long one device of a mesh takes for a step: the launches of its program as planned for the device, and its collectives beside them,
// in the order and with the waits of a run (partition/device_schedule).
#pragma once
#include <optional>
#include <span>

#include "compiler/cost/device.h"
#include "compiler/fuse/planned_step.h"
#include "compiler/partition/device_timeline.h"
#include "compiler/partition/partition.h"

namespace einc {

// `collective_s`: seconds of each, in the order of collectives_of; so are exposed_s. Nothing where a device cannot carry its part out
// (partition/localize), or has no rate for a number format.
std::optional<DeviceTimeline> mesh_step(const Partitioned& partitioned, const Bindings& given, const PlanStep& plan, const Device& device,
                                        std::span<const double> collective_s);

}  // namespace einc
