// SPDX-License-Identifier: Apache-2.0
// The processes that share the devices of a mesh: how this one finds the others, and what it asks of them besides collectives.
#pragma once
#include <cstdint>
#include <span>
#include <string>
#include <vector>

#include "runtime/mesh/transport.h"

namespace einc {

inline constexpr const char* kPluginVariable = "EINC_MESH_PLUGIN";
// Opens the plug-in that moves bytes between processes: the file that the variable names, or libeinc_mpi.so beside the program.
// Throws RuntimeFailure (resource) with what is missing.
const EincTransport* open_transport();

// Bytes to each process and from each, as EincTransport::exchange says. Throws RuntimeFailure (resource) where that fails, LateProcess
// where one does not come.
void exchange(const EincTransport& transport, const void* send, std::span<const int64_t> send_bytes, void* receive,
              std::span<const int64_t> receive_bytes);
// What each process has for a number, in their order.
template <class Number>
std::vector<Number> numbers_of_all(const EincTransport& transport, Number own) {
  const auto processes = static_cast<size_t>(transport.size);
  const std::vector<Number> sent(processes, own);
  std::vector<Number> all(processes);
  const std::vector<int64_t> bytes(processes, sizeof own);
  exchange(transport, sent.data(), bytes, all.data(), bytes);
  return all;
}

// Throws RuntimeFailure (data) that names the first process whose number is not that of the first one, and what it stands for.
void demand_equal(const EincTransport& transport, uint64_t number, const std::string& what);

}  // namespace einc
