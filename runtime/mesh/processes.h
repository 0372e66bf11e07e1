// SPDX-License-Identifier: Apache-2.0
// The processes that share the devices of a mesh: how this one finds the others, and what it asks of them besides collectives.
#pragma once
#include <cstdint>
#include <string>

#include "runtime/mesh/transport.h"

namespace einc {

// Opens the plug-in that moves bytes between processes: the file that EINC_MESH_PLUGIN names, or libeinc_mpi.so beside the program.
// Throws RuntimeFailure (resource) with what is missing.
const EincTransport* open_transport();

// Throws RuntimeFailure (data) that names the first process whose number is not that of the first one, and what it stands for.
void demand_equal(const EincTransport& transport, uint64_t number, const std::string& what);

}  // namespace einc
