// SPDX-License-Identifier: Apache-2.0
// A stage of a mesh's device as it was planned: between which of its launches what it shares with others is needed.
#pragma once
#include "compiler/fuse/form_graph.h"
#include "compiler/partition/device_schedule.h"

namespace einc {

PlannedStage planned_stage(const DeviceStage& stage, const FormedGraph& formed);

}  // namespace einc
