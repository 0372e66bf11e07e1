// SPDX-License-Identifier: Apache-2.0
// A program with a mesh, compiled to be carried out part by part on this machine's processor.
#pragma once
#include "compiler/api/compile_program.h"
#include "runtime/mesh/mesh_program.h"

namespace einc {

// Throws Error (program) for an op that cannot be split. `transport`: null for one process.
std::shared_ptr<const MeshProgram> mesh_program(const ProgramGraphs& graphs, const std::filesystem::path& cache,
                                                const Scheduling& scheduling, const EincTransport* transport = nullptr);

}  // namespace einc
