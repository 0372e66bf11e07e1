// SPDX-License-Identifier: Apache-2.0
// Where the values of a plan lie in a device's memory: those that are never needed at the same time may lie in the same place.
#pragma once
#include "runtime/mesh/mesh_plan.h"

namespace einc {

void place_values(MeshPlan& plan);

}  // namespace einc
