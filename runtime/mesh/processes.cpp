// SPDX-License-Identifier: Apache-2.0
// The plug-in stays open until the process ends: its engine may have threads, and MPI cannot be started twice.
#include "runtime/mesh/processes.h"

#include <dlfcn.h>
#include <fmt/format.h>

#include <cstdlib>
#include <filesystem>

#include "runtime/base/failure.h"

namespace einc {
namespace {

namespace fs = std::filesystem;

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

void exchange(const EincTransport& transport, const void* send, std::span<const int64_t> send_bytes, void* receive,
              std::span<const int64_t> receive_bytes) {
  const int error = transport.exchange(transport.context, send, send_bytes.data(), receive, receive_bytes.data());
  if (error == EINC_TRANSPORT_STOPPED) throw RuntimeFailure(FailureKind::resource, "the processes' exchange is given up");
  if (error < 0) throw LateProcess(-1 - error, "the next exchange");
  if (error != 0)
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("the processes' exchange failed: {}", transport.describe(transport.context, error)));
}

void demand_equal(const EincTransport& transport, uint64_t number, const std::string& what) {
  const std::vector<uint64_t> all = numbers_of_all(transport, number);
  for (size_t p = 1; p < all.size(); ++p)
    if (all[p] != all[0])
      throw RuntimeFailure(FailureKind::data, fmt::format("process {} of {} has another {} than the first", p, all.size(), what));
}

}  // namespace einc
