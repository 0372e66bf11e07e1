// SPDX-License-Identifier: Apache-2.0
#include "runtime/mesh/processes.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>
#include <vector>

#include "runtime/base/failure.h"

namespace einc {
namespace {

namespace fs = std::filesystem;

constexpr const char* kPluginVariable = "EINC_MESH_PLUGIN";
constexpr const char* kPluginFile = "libeinc_mpi.so";

std::string plugin_beside_us() {
  std::error_code error;
  const fs::path folder = fs::read_symlink("/proc/self/exe", error).parent_path();
  for (const fs::path& file : {folder / kPluginFile, folder.parent_path() / "lib" / kPluginFile})
    if (!error && fs::exists(file, error)) return file;
  return "";
}

}  // namespace

const EincTransport* open_transport() {
  const char* given = std::getenv(kPluginVariable);
  const std::string file = given ? given : plugin_beside_us();
  if (file.empty())
    throw RuntimeFailure(FailureKind::resource, fmt::format("several processes need {} beside einc: build it where MPI is installed "
                                                            "(EINC_WITH_MPI), or name another plug-in by {}",
                                                            kPluginFile, kPluginVariable));
  const auto failure = [&](const std::string& why) {
    return RuntimeFailure(FailureKind::resource, fmt::format("no plug-in for processes in '{}': {}", file, why));
  };
  void* handle = dlopen(fs::absolute(file).c_str(), RTLD_NOW | RTLD_LOCAL);  // open until the process ends
  if (!handle) throw failure(dlerror());
  auto* open = reinterpret_cast<EincOpenTransport*>(dlsym(handle, EINC_TRANSPORT_SYMBOL));
  if (!open) throw failure(fmt::format("it has no {}", EINC_TRANSPORT_SYMBOL));
  const EincTransport* transport = open();
  if (!transport) throw failure("its engine does not start");
  if (transport->version != EINC_TRANSPORT_VERSION)
    throw failure(fmt::format("it is of interface {}, this is {}", transport->version, EINC_TRANSPORT_VERSION));
  return transport;
}

void demand_equal(const EincTransport& transport, uint64_t number, const std::string& what) {
  const auto processes = static_cast<size_t>(transport.size);
  const std::vector<uint64_t> own(processes, number);
  std::vector<uint64_t> all(processes);
  const std::vector<int64_t> bytes(processes, sizeof number);
  if (const int error = transport.exchange(transport.context, own.data(), bytes.data(), all.data(), bytes.data()); error != 0)
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("the processes' exchange failed: {}", transport.describe(transport.context, error)));
  for (size_t p = 1; p < processes; ++p)
    if (all[p] != all[0])
      throw RuntimeFailure(FailureKind::data, fmt::format("process {} of {} has another {} than the first", p, processes, what));
}

}  // namespace einc
