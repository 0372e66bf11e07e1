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

// A status to leave with where several processes were started: without a mesh each would do all of the work, and a mesh is carried out by
// one process alone so far. The first of them says so, with the lines to add.
std::optional<ExitStatus> refuse_processes(const Graph& graph, const std::string& file);

}  // namespace einc
