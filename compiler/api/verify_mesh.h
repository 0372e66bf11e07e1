// SPDX-License-Identifier: Apache-2.0
// Proves of a mesh's plan that no device reads a value before it is there, or after another has taken its place: the steps are carried out
// on the owners of a device's memory. What a collective reads and makes must own its memory from the start to the wait, and nobody may
// touch the result in between.
#pragma once
#include <string>

#include "runtime/mesh/mesh_plan.h"
#include "runtime/mesh/mesh_shape.h"

namespace einc {

// "" or the first thing that is wrong. `stages`: the mesh axis of a pipeline whose stage this is a plan of.
std::string verify_mesh_plan(const MeshPlan& plan, int stages = kNoMeshAxis);

}  // namespace einc
