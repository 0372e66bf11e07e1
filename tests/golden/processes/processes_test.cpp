// SPDX-License-Identifier: Apache-2.0
// A mesh shared out among processes that mpirun starts: the same bits for any number of them, one that speaks, and none that outlives
// another. Left out, by name, where there is no mpirun or no plug-in.
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/golden/processes/mesh_runs.h"

namespace einc::test {

TEST_CASE("processes: one process and any number of threads leave one checkpoint, near that of the program without its mesh") {
  const MeshRuns runs;
  runs.done(1, "one", {"--steps=20", "--threads=1"});
  runs.done(1, "three", {"--steps=20", "--threads=3"});
  CHECK(runs.checkpoint("one", 20) == runs.checkpoint("three", 20));
  runs.done(1, "whole", {"--steps=20", "--mesh=data=1,model=1", "--shard=batch=data"});
  const std::vector<double> parts = runs.losses("one"), whole = runs.losses("whole");
  REQUIRE(parts.size() == 20);
  REQUIRE(whole.size() == 20);
  for (size_t i = 0; i < parts.size(); ++i) CHECK(parts[i] == doctest::Approx(whole[i]).epsilon(1e-5));
  CHECK(parts[19] < parts[0]);
}

TEST_CASE("processes: a mesh on a GPU trains near the processor's, and goes on to the same bits") {
  const bool shared = share_kernel_cache();
  CHECK(shared);
  const MeshRuns runs;
  runs.done(1, "cpu", {"--steps=8"});
  runs.done(1, "straight", {"--steps=8", "--target=cuda"});
  runs.done(1, "parts", {"--steps=3", "--target=cuda"});
  runs.done(1, "parts", {"--steps=8", "--target=cuda", "--resume"});
  CHECK(runs.checkpoint("parts", 8) == runs.checkpoint("straight", 8));
  const std::vector<double> parts = runs.losses("straight"), processor = runs.losses("cpu");
  REQUIRE(parts.size() == 8);
  for (size_t i = 0; i < parts.size(); ++i) CHECK(parts[i] == doctest::Approx(processor[i]).epsilon(1e-4));
}

TEST_CASE("processes: a run goes on over another mesh, says so, and ends near") {
  const MeshRuns runs;
  runs.done(1, "straight", {"--steps=20"});
  runs.done(1, "parts", {"--steps=5"});
  const Ran other = runs.run(1, "parts", {"--steps=10", "--resume", "--mesh=data=2", "--shard=batch=data; params=data"});
  CHECK_MESSAGE(other.status == 0, other.errors);
  CHECK(other.errors.find("mesh was data = 4, model = 2, is data = 2 now") != std::string::npos);
  runs.done(1, "parts", {"--steps=20", "--resume", "--mesh=model=2", "--shard=heads=model"});
  const std::vector<double> parts = runs.losses("parts"), straight = runs.losses("straight");
  REQUIRE(parts.size() >= 10);
  for (size_t i = 0; i < 10; ++i) CHECK(parts[parts.size() - 10 + i] == doctest::Approx(straight[10 + i]).epsilon(1e-4));
}

TEST_CASE("processes: any number of them leaves the same checkpoint, and one speaks") {
  if (!launches()) return;
  const MeshRuns runs;
  runs.done(1, "one", {"--steps=20"});
  for (const int processes : {2, 4, 8}) {
    CAPTURE(processes);
    const std::string name = fmt::format("of{}", processes);
    const Ran ran = runs.run(processes, name, {"--steps=20"});
    CHECK_MESSAGE(ran.status == 0, ran.errors);
    CHECK(runs.checkpoint(name, 20) == runs.checkpoint("one", 20));
    CHECK(runs.losses(name) == runs.losses("one"));
    CHECK(count_of(ran.output, "trained 20 steps") == 1);
  }
}

TEST_CASE("processes: the first one takes the memory that was foretold, with whole params for a checkpoint") {
  if (!launches()) return;
  const MeshRuns runs;
  const std::string file =
      runs.folder().text("large.ein",
                         "dim batch = 8, n = 1024, m = 1024\nmesh data = 4\nshard batch over data\nshard params over data\n"
                         "param w: [n m] ~ normal(std = 0.01)\nparam v: [m n] ~ normal(std = 0.01)\n"
                         "frozen param x: [batch n] ~ normal(std = 1)\nh = relu(einsum(x, w, \"batch n, n m -> batch m\"))\n"
                         "y = einsum(h, v, \"batch m, m n -> batch n\")\nloss = mean((y - x)^2)\n"
                         "minimize loss using adamw(lr = 1e-3)\n");
  Surroundings surroundings;
  surroundings.launcher = {"timeout", "-k", "5", "60", "mpirun", "-np", "4"};
  const Ran ran = run_einc({"train", file, "--steps=4", "--threads=1", "--every=2", "--checkpoint=" + runs.folder().at("large"),
                            "--log=" + runs.folder().at("large.jsonl")},
                           surroundings);
  REQUIRE_MESSAGE(ran.status == 0, ran.errors);
  const double predicted = runs.folder().logged("large.jsonl", "run", "predicted_bytes").front();
  const double measured = runs.folder().logged("large.jsonl", "end", "measured_bytes").front();
  CHECK(measured <= predicted + 8e6);  // what the allocator and MPI keep
  CHECK(measured >= predicted * 0.6);
}

TEST_CASE("processes: a run says how many there are, and how many threads each has") {
  if (!launches()) return;
  const MeshRuns runs;
  const Ran ran = runs.run(2, "counted", {"--threads=1", "--steps=1"});
  REQUIRE_MESSAGE(ran.status == 0, ran.errors);
  CHECK_MESSAGE(ran.output.find("on 2 processes of 1 thread") != std::string::npos, ran.output);
  CHECK(runs.folder().logged("counted.jsonl", "run", "peak_flops").front() > 0);
}

TEST_CASE("processes: narrow numbers, several batches a step and evaluations leave the same checkpoint too") {
  if (!launches()) return;
  const MeshRuns runs;
  const std::vector<std::string> rows[] = {
      {"--precision=bf16", "--accumulate=2"},
      {"--precision=f16", "--val-fraction=0.2", "--eval-every=3", "--eval-batches=2"},
      {"--precision=fp8", "--shard=batch=data; heads,vocab=model; params=data", "--mesh=data=4,model=2"}};
  for (const std::vector<std::string>& row : rows) {
    CAPTURE(row.front());
    std::vector<std::string> options = row;
    options.push_back("--steps=8");
    runs.done(1, "one" + row.front(), options);
    runs.done(4, "four" + row.front(), options);
    CHECK(runs.checkpoint("four" + row.front(), 8) == runs.checkpoint("one" + row.front(), 8));
  }
}

TEST_CASE("processes: a run goes on with another number of them") {
  if (!launches()) return;
  const MeshRuns runs;
  runs.done(1, "straight", {"--steps=24"});
  runs.done(4, "parts", {"--steps=8"});
  runs.done(2, "parts", {"--steps=16", "--resume"});
  runs.done(1, "parts", {"--steps=24", "--resume"});
  CHECK(runs.checkpoint("parts", 24) == runs.checkpoint("straight", 24));
}

TEST_CASE("processes: one that stands still is named, and ends all") {
  if (!launches()) return;
  const MeshRuns runs;
  for (const size_t victim : {0, 2}) {
    CAPTURE(victim);
    const std::string name = fmt::format("stopped{}", victim);
    std::string rank;
    std::chrono::steady_clock::time_point stopped;
    Surroundings surroundings;
    surroundings.ready = [&] { return runs.logged_steps(name) > 5; };
    surroundings.act = [&](pid_t launcher) {
      const std::vector<pid_t> ranks = einc_below(launcher);
      REQUIRE(ranks.size() == 4);
      rank = variable_of(ranks[victim], "OMPI_COMM_WORLD_RANK");
      kill(ranks[victim], SIGSTOP);
      stopped = std::chrono::steady_clock::now();
    };
    const Ran ran = runs.run(4, name, {"--steps=100000", "--timeout=1.5"}, surroundings);
    CAPTURE(ran.errors);
    CHECK(ran.status == 4);
    CHECK(ran.errors.find("rank " + rank + " has not reached ") != std::string::npos);
    CHECK(ran.errors.find(" in time (--timeout)") != std::string::npos);
    const auto after = std::chrono::steady_clock::now() - stopped;
    CHECK(after > std::chrono::milliseconds(1500));
    CHECK(after < std::chrono::seconds(12));
  }
}

TEST_CASE("processes: SIGUSR1 ends a run after a step that all have done") {
  if (!launches()) return;
  const MeshRuns runs;
  Surroundings surroundings;
  surroundings.ready = [&] { return runs.logged_steps("stopped") > 5; };
  surroundings.act = [&](pid_t launcher) {
    for (const pid_t rank : einc_below(launcher)) kill(rank, SIGUSR1);
  };
  const Ran ran = runs.run(4, "stopped", {"--steps=100000"}, surroundings);
  CHECK(ran.status == 130);
  const std::string line = first_line_with(ran.errors, "einc: interrupted after step ");
  REQUIRE_MESSAGE(!line.empty(), ran.errors);
  const auto step = static_cast<uint64_t>(std::atoll(line.c_str() + std::string_view("einc: interrupted after step ").size()));
  runs.done(1, "straight", {"--steps=" + std::to_string(step)});
  CHECK(runs.checkpoint("stopped", step) == runs.checkpoint("straight", step));
}

TEST_CASE("processes: what fails ends all of them with one message and its status") {
  if (!launches()) return;
  const MeshRuns runs;
  struct Row {
    int processes;
    std::vector<std::string> options;
    int status;
    const char* message;
  };
  const Row rows[] = {
      {3, {"--steps=2"}, 3, "3 processes do not divide the 8 devices of the mesh"},
      {2, {"--steps=2", "--data=tokens=" + runs.folder().at("none.bin")}, 4, "none.bin: cannot read"},
      {2, {"--steps=2", "--weights=" + runs.folder().at("none.safetensors")}, 4, "none.safetensors"},
      {4, {"--steps=60", "--lr=1e30"}, 5, "of step "},
      {2, {"--steps=2", "--target=reference"}, 4, "--target=reference does not carry out a mesh among several processes"},
  };
  int number = 0;
  for (const Row& row : rows) {
    const Ran ran = runs.run(row.processes, fmt::format("failed{}", number++), row.options);
    CAPTURE(ran.errors);
    CHECK(ran.status == row.status);
    if (*row.message != '\0') CHECK(count_of(ran.errors, row.message) == 1);
  }
}

TEST_CASE("processes: a position outside its table is told as that of the whole program's data") {
  const MeshRuns runs;
  runs.folder().tokens("wrong.bin", 1500, 19);  // of 16 that the table has
  const auto told = [&](int processes, std::vector<std::string> options) {
    options.insert(options.end(), {"--steps=20", "--data=tokens=" + runs.folder().at("wrong.bin")});
    const Ran ran = runs.run(processes, fmt::format("wrong{}{}", processes, options.size()), options);
    CHECK(ran.status == 3);
    return first_line_with(ran.errors, "index out of range");
  };
  const std::string whole = told(1, {"--mesh=data=1", "--shard=batch=data"});
  CHECK(whole.find("'tokens' at [") != std::string::npos);
  CHECK(whole.find("wrong.bin") != std::string::npos);
  CHECK(told(1, {}) == whole);
  CHECK(told(1, {"--threads=1", "--mesh=data=4", "--shard=batch=data"}) == whole);
  if (launches()) CHECK(told(4, {}) == whole);
}

TEST_CASE("processes: without the plug-in it is named") {
  setenv("EINC_MESH_PLUGIN", "/nowhere/libmesh.so", 1);
  setenv("OMPI_COMM_WORLD_SIZE", "2", 1);
  setenv("OMPI_COMM_WORLD_RANK", "0", 1);
  const MeshRuns runs;
  const Ran ran = runs.run(1, "none", {"--steps=1"});
  for (const char* name : {"EINC_MESH_PLUGIN", "OMPI_COMM_WORLD_SIZE", "OMPI_COMM_WORLD_RANK"}) unsetenv(name);
  CHECK(ran.status == 4);
  CHECK(ran.errors.find("no plug-in for processes in '/nowhere/libmesh.so'") != std::string::npos);
}
}  // namespace einc::test
