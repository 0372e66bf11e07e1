// SPDX-License-Identifier: Apache-2.0
// A GPU for each process and NCCL between them. A shell starts the processes as torchrun does, but ends none for another.
#include <signal.h>

#include <chrono>
#include <thread>

#include "tests/golden/processes/mesh_runs.h"

namespace einc::test {
namespace {

class NcclRuns : public MeshRuns {
 public:
  explicit NcclRuns(std::string_view model = kMeshModel) : MeshRuns(model) {
    share_kernel_cache();
    setenv("EINC_EMULATED_NCCL", folder().at("nccl").c_str(), 1);
    setenv("EINC_EMULATED_DEVICES", "8", 1);
  }
  Ran run(int processes, const std::string& name, std::vector<std::string> more, Surroundings surroundings = {}) {
    more.emplace_back("--target=cuda");
    fs::remove_all(folder().at("nccl"));
    surroundings.launcher = {"timeout", "-k", "5", "100", "sh", "-c", kTorchrun, std::to_string(processes)};
    return MeshRuns::run(processes, name, more, surroundings);
  }
  void done(int processes, const std::string& name, const std::vector<std::string>& more) {
    const Ran ran = run(processes, name, more);
    CHECK_MESSAGE(ran.status == 0, ran.errors);
  }

 private:
  static constexpr const char* kTorchrun =
      "i=0; while [ $i -lt $0 ]; do RANK=$i LOCAL_RANK=$i WORLD_SIZE=$0 LOCAL_WORLD_SIZE=$0 MASTER_ADDR=localhost MASTER_PORT=29500 "
      "\"$@\" & p=\"$p $!\"; i=$((i+1)); done; s=0; for q in $p; do wait $q || s=$?; done; exit $s";
};

}  // namespace

TEST_CASE("processes with a GPU each: any number of them leaves the same checkpoint, and one speaks") {
  NcclRuns runs;
  for (const std::vector<std::string>& row : {std::vector<std::string>{"--steps=8"},
                                              {"--steps=4", "--accumulate=2", "--precision=bf16",
                                               "--shard=batch=data; heads,vocab=model; params=data", "--mesh=data=4,model=2"}}) {
    runs.MeshRuns::done(1, "one" + row[0], [&] {
      std::vector<std::string> options = row;
      options.emplace_back("--target=cuda");
      return options;
    }());
    const auto steps = static_cast<uint64_t>(std::atoi(row[0].c_str() + 8));
    for (const int processes : {2, 4}) {
      CAPTURE(processes);
      const std::string name = fmt::format("of{}{}", processes, row[0]);
      const Ran ran = runs.run(processes, name, row);
      CHECK_MESSAGE(ran.status == 0, ran.errors);
      CHECK(runs.checkpoint(name, steps) == runs.checkpoint("one" + row[0], steps));
      CHECK(count_of(ran.output, "trained ") == 1);
    }
    if (!launches()) continue;
    fs::remove_all(runs.folder().at("nccl"));
    std::vector<std::string> options = row;
    options.emplace_back("--target=cuda");
    runs.MeshRuns::done(2, "mpi" + row[0], options);  // MPI hands out NCCL's id
    CHECK(runs.checkpoint("mpi" + row[0], steps) == runs.checkpoint("one" + row[0], steps));
  }
}

TEST_CASE("processes with a GPU each: gathers that go in one move leave the same checkpoint") {
  std::string model(kMeshModel);
  const std::string rows = "x = wte[vocab = tokens]\n";
  model.replace(model.find(rows), rows.size(),
                "param scale: [embed] ~ ones\nparam shift: [embed] ~ zeros\nx = wte[vocab = tokens] * scale + shift\n");
  NcclRuns runs(model);
  const Ran report = run_einc({runs.folder().text("report.ein", model), "--device=h100-sxm", "--report"});
  CHECK(report.output.find(" go with others in one move") != std::string::npos);
  runs.MeshRuns::done(1, "one", {"--steps=4", "--target=cuda"});
  for (const int processes : {2, 4}) {
    CAPTURE(processes);
    const std::string name = fmt::format("of{}", processes);
    runs.done(processes, name, {"--steps=4"});
    CHECK(runs.checkpoint(name, 4) == runs.checkpoint("one", 4));
  }
}

TEST_CASE("processes with a GPU each: stages of a loop leave the same checkpoint on any number of them, and go on with another") {
  NcclRuns runs(kLayersModel);
  const std::vector<std::string> options{"--steps=8", "--val-fraction=0.2", "--eval-every=4"};
  std::vector<std::string> alone = options;
  alone.emplace_back("--target=cuda");
  runs.MeshRuns::done(1, "one", alone);
  for (const int processes : {2, 4, 8}) {
    CAPTURE(processes);
    const std::string name = fmt::format("of{}", processes);
    runs.done(processes, name, options);
    CHECK(runs.checkpoint(name, 8) == runs.checkpoint("one", 8));
    CHECK(runs.losses(name) == runs.losses("one"));
  }
  runs.done(4, "parts", {"--steps=4"});
  runs.done(2, "parts", {"--steps=8", "--resume"});
  runs.done(4, "straight", {"--steps=8"});
  CHECK(runs.checkpoint("parts", 8) == runs.checkpoint("straight", 8));
  // A processor gives what a GPU gives, up to rounding.
  runs.MeshRuns::done(1, "processor", options);
  const std::vector<double> here = runs.losses("one"), there = runs.losses("processor");
  REQUIRE(here.size() == there.size());
  for (size_t i = 0; i < here.size(); ++i) CHECK(here[i] == doctest::Approx(there[i]).epsilon(1e-4));
}

TEST_CASE("processes with a GPU each: one that is killed ends all, and the run goes on with another number") {
  NcclRuns runs;
  runs.done(2, "straight", {"--steps=40", "--every=10"});
  Surroundings surroundings;
  std::chrono::steady_clock::time_point killed;
  surroundings.ready = [&] { return runs.logged_steps("killed") > 24; };
  surroundings.act = [&](pid_t launcher) {
    const std::vector<pid_t> ranks = einc_below(launcher);
    REQUIRE(ranks.size() == 4);
    kill(ranks[3], SIGKILL);
    killed = std::chrono::steady_clock::now();
  };
  const Ran ran = runs.run(4, "killed", {"--steps=100000", "--every=10"}, surroundings);
  CHECK(ran.status != 0);  // the shell's, of the last that failed: 4, or that of the killed one
  // Of a collective or of what the processes tell each other behind a step, wherever it was.
  CHECK(ran.errors.find(": remote process exited or there was a network error") != std::string::npos);
  CHECK(std::chrono::steady_clock::now() - killed < std::chrono::seconds(10));
  for (const fs::directory_entry& entry : fs::directory_iterator(runs.folder().at("killed"))) {
    const std::string step = entry.path().filename().string();
    if (step.rfind("step-", 0) == 0 && std::atoll(step.c_str() + 5) > 30) fs::remove_all(entry.path());
  }
  runs.done(2, "killed", {"--steps=40", "--every=10", "--resume"});
  CHECK(runs.checkpoint("killed", 40) == runs.checkpoint("straight", 40));
}

TEST_CASE("processes with a GPU each: one that stands still ends all, where the others wait for it") {
  NcclRuns runs;
  Surroundings surroundings;
  surroundings.ready = [&] { return runs.logged_steps("stopped") > 5; };
  surroundings.act = [&](pid_t launcher) {
    const std::vector<pid_t> ranks = einc_below(launcher);
    REQUIRE(ranks.size() == 4);
    kill(ranks[2], SIGSTOP);
    std::thread([stopped = ranks[2]] {
      std::this_thread::sleep_for(std::chrono::seconds(8));
      kill(stopped, SIGKILL);
    }).detach();
  };
  const Ran ran = runs.run(4, "stopped", {"--steps=100000", "--timeout=1.5"}, surroundings);
  CAPTURE(ran.errors);
  const auto tells = [&](const char* text) { return ran.errors.find(text) != std::string::npos; };
  CHECK((tells("a rank has not reached ") || tells("a rank has not come to it ")));
  CHECK(ran.errors.find(" in time (--timeout)") != std::string::npos);
}

}  // namespace einc::test
