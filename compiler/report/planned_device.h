// SPDX-License-Identifier: Apache-2.0
// A device's program as it was planned: between which of its launches what devices share is needed.
#pragma once
#include "compiler/fuse/form_graph.h"
#include "compiler/partition/device_schedule.h"

namespace einc {

// `formed`: of the program's graph, or of one alike.
PlannedDevice planned_device(const DeviceProgram& program, const FormedGraph& formed);

}  // namespace einc
