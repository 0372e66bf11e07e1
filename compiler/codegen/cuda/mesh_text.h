// SPDX-License-Identifier: Apache-2.0
// What a mesh's devices do besides their launches, as CUDA C++: sums of collectives in the order of runtime/mesh/tree_sum.h, and looks at
// what is to be stored (runtime/cuda/cuda_mesh.h has the names and arguments).
#pragma once
#include "runtime/cuda/cuda_mesh.h"

namespace einc {

// All that the plan asks for.
CudaExecutable mesh_functions(const MeshPlan& plan, const MeshShape& mesh);
// Of all stages and rounds; with means of sums over microbatches.
CudaExecutable mesh_functions(const PipelinePlan& pipeline, const MeshShape& mesh);

}  // namespace einc
