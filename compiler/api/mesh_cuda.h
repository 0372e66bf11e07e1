// SPDX-License-Identifier: Apache-2.0
// A program with a mesh, compiled to be carried out part by part on GPUs.
#pragma once
#include "compiler/api/compile_program.h"
#include "compiler/lower/library_products.h"
#include "runtime/cuda/cuda_mesh.h"

namespace einc {

// Throws Error (program) for an op that cannot be split, RuntimeFailure (resource) without a GPU. `library`: what cuBLASLt multiplies.
std::shared_ptr<const CudaMeshProgram> cuda_mesh_program(const ProgramGraphs& graphs, const std::filesystem::path& cache,
                                                         const Scheduling& scheduling, const EincTransport* transport = nullptr,
                                                         const LibraryLimits& library = {});

}  // namespace einc
