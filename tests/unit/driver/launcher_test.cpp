// SPDX-License-Identifier: Apache-2.0
// Where processes that no MPI connects meet, and which GPU each takes, as launchers tell it in their variables.
#include "compiler/driver/launcher.h"

#include <doctest/doctest.h>

#include <cstdlib>
#include <string>
#include <vector>

using namespace einc;

TEST_CASE("launcher: the place where NCCL's processes meet") {
  struct Row {
    std::vector<std::pair<const char*, const char*>> variables;
    std::string place;
  };
  const Row rows[] = {
      {{}, ""},
      {{{"MASTER_ADDR", "gpu1"}, {"MASTER_PORT", "29500"}}, "gpu1:29501"},
      {{{"MASTER_ADDR", "::1"}, {"MASTER_PORT", "65535"}}, "[::1]:65534"},
      {{{"MASTER_ADDR", "gpu1"}}, ""},
      {{{"NCCL_COMM_ID", "a:5"}, {"MASTER_ADDR", "gpu1"}, {"MASTER_PORT", "29500"}}, "a:5"},
      {{{"SLURM_STEP_NODELIST", "gpu[03-07,12],cpu1"}, {"SLURM_JOB_ID", "123456"}}, "gpu03:23456"},
      {{{"SLURM_STEP_NODELIST", "login,gpu[1-2]"}, {"SLURM_JOB_ID", "7"}}, "login:20007"},
      {{{"SLURM_STEP_NODELIST", "gpu[5]"}, {"SLURM_JOB_ID", "7"}}, "gpu5:20007"},
      {{{"SLURM_STEP_NODELIST", "gpu5"}}, ""},
  };
  for (const Row& row : rows) {
    for (const auto& [name, value] : row.variables) setenv(name, value, 1);
    CHECK(meeting_place() == row.place);
    for (const auto& [name, value] : row.variables) unsetenv(name);
  }
}

TEST_CASE("launcher: the number of a process on its machine") {
  CHECK(local_rank() == 0);
  for (const char* name : {"OMPI_COMM_WORLD_LOCAL_RANK", "MPI_LOCALRANKID", "SLURM_LOCALID", "LOCAL_RANK"}) {
    setenv(name, "3", 1);
    CHECK(local_rank() == 3);
    unsetenv(name);
  }
}
