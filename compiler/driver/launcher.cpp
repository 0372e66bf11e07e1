// SPDX-License-Identifier: Apache-2.0
#include "compiler/driver/launcher.h"

#include <fmt/format.h>

#include <charconv>
#include <cstdlib>
#include <cstring>

#include "runtime/mesh/processes.h"

namespace einc {
namespace {

// What launchers tell their processes: how many there are, and which this is. Slurm's variables of a whole job are also set where nothing
// was launched; those of a step are not.
struct LauncherVariables {
  const char *name, *processes, *rank;
};
constexpr LauncherVariables kLaunchers[] = {{"mpirun", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"},
                                            {"mpiexec", "PMI_SIZE", "PMI_RANK"},
                                            {"srun", "SLURM_STEP_NUM_TASKS", "SLURM_PROCID"},
                                            {"torchrun", "WORLD_SIZE", "RANK"}};

std::optional<int64_t> variable(const char* name) {
  const char* text = std::getenv(name);
  int64_t value = 0;
  if (text == nullptr) return std::nullopt;
  const auto [end, error] = std::from_chars(text, text + std::strlen(text), value);
  return error == std::errc() && *end == '\0' && value >= 0 ? std::optional(value) : std::nullopt;
}

constexpr int64_t kFirstPort = 20000, kPorts = 10000;  // below those that the system gives out

// Of "gpu[03-07,12],cpu1": gpu03.
std::string first_node(const std::string& nodes) {
  const size_t list = nodes.find('[');
  const std::string first = nodes.substr(0, nodes.find_first_of("[,"));
  if (list == std::string::npos || list > nodes.find(',')) return first;
  const size_t end = nodes.find_first_of("-,]", list);
  return first + nodes.substr(list + 1, end - list - 1);
}

// An axis to split in the advice: the first of an input.
std::string first_axis(const Graph& graph) {
  for (const Node& node : graph.nodes)
    if (node.op == Op::input && node.type.rank() > 0 && node.type.axis(0).is_named()) return node.type.axis(0).name.str();
  return "batch";
}

}  // namespace

std::optional<Launcher> find_launcher() {
  for (const LauncherVariables& v : kLaunchers)
    if (const auto processes = variable(v.processes), rank = variable(v.rank); processes && rank)
      return Launcher{v.name, *processes, *rank};
  return std::nullopt;
}

int local_processes(int processes) {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_SIZE", "MPI_LOCALNRANKS", "LOCAL_WORLD_SIZE"})
    if (const auto count = variable(name); count && *count > 0 && *count <= processes) return static_cast<int>(*count);
  return processes;
}

int local_rank() {
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"})
    if (const auto rank = variable(name)) return static_cast<int>(*rank);
  return 0;
}

bool is_connected(const Launcher& launcher) {
  const bool slurm = launcher.name == "srun";
  // A step of Slurm's has these where it runs processes of MPI.
  const bool by_slurm = slurm && (std::getenv("PMIX_RANK") != nullptr || std::getenv("PMI_FD") != nullptr);
  return (!slurm && launcher.name != "torchrun") || by_slurm || std::getenv(kPluginVariable) != nullptr;
}

// torchrun itself listens at MASTER_PORT. Slurm's jobs that share a machine have other numbers.
std::string meeting_place() {
  if (const char* given = std::getenv("NCCL_COMM_ID")) return given;
  const char *host = std::getenv("MASTER_ADDR"), *nodes = std::getenv("SLURM_STEP_NODELIST");
  if (const auto port = variable("MASTER_PORT"); host != nullptr && port) {
    const bool is_ipv6 = std::strchr(host, ':') != nullptr;
    return fmt::format("{}{}{}:{}", is_ipv6 ? "[" : "", host, is_ipv6 ? "]" : "", *port < 65535 ? *port + 1 : *port - 1);
  }
  const auto job = variable("SLURM_JOB_ID");
  if (nodes == nullptr || !job) return "";
  return fmt::format("{}:{}", first_node(nodes), kFirstPort + *job % kPorts);
}

std::optional<ExitStatus> refuse_launcher(const Launcher& launcher, const std::string& file) {
  if (is_connected(launcher)) return std::nullopt;
  const bool slurm = launcher.name == "srun";
  if (launcher.rank == 0)
    fmt::print(stderr, "einc: {0} started {1} processes that no MPI connects: start them by\n  {2} {1} einc train {3} ...\n", launcher.name,
               launcher.processes, slurm ? "srun --mpi=pmix -n" : "mpirun -np", file);
  return ExitStatus::wrong_usage;
}

std::optional<ExitStatus> refuse_processes(const Graph& graph, const std::string& file, Sharing sharing) {
  const std::optional<Launcher> launcher = find_launcher();
  if (!launcher || launcher->processes <= 1) return std::nullopt;
  const bool first = launcher->rank == 0;
  if (!graph.mesh.empty()) {
    if (sharing == Sharing::mesh) return std::nullopt;
    if (first)
      fmt::print(stderr, "einc: {} started {} processes; only `einc train` shares a mesh out among several: start einc without it\n",
                 launcher->name, launcher->processes);
    return ExitStatus::environment;
  }
  if (first)
    fmt::print(stderr,
               "einc: {} started {} processes, and {} says nothing of how they share the work: add\n  mesh data = {}\n  shard {} over "
               "data\n",
               launcher->name, launcher->processes, file, launcher->processes, first_axis(graph));
  return ExitStatus::wrong_usage;
}

}  // namespace einc
