// SPDX-License-Identifier: Apache-2.0
// Whether a launcher (mpirun, srun, torchrun) has started several of this process.
#pragma once
#include <cstdint>
#include <optional>
#include <string>

#include "compiler/driver/exit_status.h"
#include "compiler/ir/graph.h"

namespace einc {

struct Launcher {
  std::string name;
  int64_t processes = 1, rank = 0;
};
std::optional<Launcher> find_launcher();
// Of so many processes those on this machine, as the launcher says; all of them where it does not.
int local_processes(int processes);

// Of this process among those on its machine, as the launcher says; 0 where it does not.
int local_rank();
// Whether the launcher's processes are connected by MPI or a plug-in named in its place.
bool is_connected(const Launcher& launcher);
// "host:port" where NCCL's processes meet: NCCL_COMM_ID, else as torchrun or srun tell where the first process is. Empty: nobody tells.
std::string meeting_place();

// A status to leave with where the launcher connects its processes to no MPI, and no other plug-in is named. The first of them says how to
// start `einc train` instead.
std::optional<ExitStatus> refuse_launcher(const Launcher& launcher, const std::string& file);

// What several processes may be for: a command that each would do as a whole, or one that shares a mesh out among them.
enum class Sharing : uint8_t { none, mesh };

// A status to leave with where several processes were started that cannot share the work. The first of them says so, with the lines to
// add where the program has no mesh.
std::optional<ExitStatus> refuse_processes(const Graph& graph, const std::string& file, Sharing sharing);

}  // namespace einc
