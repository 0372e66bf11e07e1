// SPDX-License-Identifier: Apache-2.0
// Stages of a loop in processes that mpirun starts.
#include "tests/golden/processes/mesh_runs.h"

namespace einc::test {
TEST_CASE("processes: stages of a loop leave the same checkpoint on any number of them, and go on with another") {
  if (!launches()) return;
  const MeshRuns runs(kLayersModel);
  runs.done(1, "one", {"--steps=12", "--val-fraction=0.2", "--eval-every=6"});
  for (const int processes : {2, 4, 8}) {
    CAPTURE(processes);
    const std::string name = fmt::format("of{}", processes);
    runs.done(processes, name, {"--steps=12", "--val-fraction=0.2", "--eval-every=6"});
    CHECK(runs.checkpoint(name, 12) == runs.checkpoint("one", 12));
    CHECK(runs.losses(name) == runs.losses("one"));
  }
  runs.done(4, "parts", {"--steps=4"});
  runs.done(8, "parts", {"--steps=8", "--resume"});
  runs.done(1, "parts", {"--steps=12", "--resume"});
  runs.done(1, "straight", {"--steps=12"});
  CHECK(runs.checkpoint("parts", 12) == runs.checkpoint("straight", 12));
  // Without stages the same microbatches, one after another.
  const std::string plain = "--mesh=data=2";
  runs.done(1, "plain", {"--steps=12", plain, "--shard=batch=data", "--accumulate=2", "-Dbatch=2"});
  const std::vector<double> staged = runs.losses("straight"), accumulated = runs.losses("plain");
  REQUIRE(staged.size() == accumulated.size());
  for (size_t i = 0; i < staged.size(); ++i) CHECK(staged[i] == doctest::Approx(accumulated[i]).epsilon(1e-5));
}

// Its rate, which a log tells, is no microbatch's.
TEST_CASE("stages: a constant learning rate trains") {
  const std::string model(kLayersModel);
  const size_t line = model.find("minimize");
  const MeshRuns runs(model.substr(0, line) + "minimize loss using momentum(lr = 0.1, momentum = 0.5)\n");
  runs.done(1, "constant", {"--steps=2"});
  CHECK(runs.losses("constant").size() == 2);
}

TEST_CASE("stages: what is not run is refused with its reason") {
  const MeshRuns runs(kLayersModel);
  const std::pair<std::vector<std::string>, const char*> refused[] = {
      {{"--memory-limit=1kB"}, "more than the limit of 1000 bytes"},
      {{"--mesh=data=2,stage=4"}, "the mesh has another axis before theirs"}};
  for (const auto& [options, reason] : refused) {
    CAPTURE(reason);
    std::vector<std::string> all = options;
    all.push_back("--steps=1");
    const Ran ran = runs.run(1, "refused", all);
    CHECK(ran.status != 0);
    CHECK_MESSAGE(ran.errors.find(reason) != std::string::npos, ran.errors);
  }
  const MeshRuns with_state(std::string(kLayersModel) + "state seen: [embed] ~ zeros\nseen <- 0.9 * seen + 0.1 * mean(x, batch, seq)\n");
  const Ran changes = with_state.run(1, "refused", {"--steps=1"});
  CHECK(changes.status != 0);
  CHECK_MESSAGE(changes.errors.find("a state changes with each microbatch") != std::string::npos, changes.errors);
  const std::string with_output = runs.folder().text("output.ein", std::string(kLayersModel) + "output top = mean(x, batch, seq)\n");
  const Ran shows = run_einc({"run", with_output, "--mode=training"});
  CHECK(shows.status != 0);
  CHECK_MESSAGE(shows.errors.find("output `top` is one of each microbatch") != std::string::npos, shows.errors);
}
}  // namespace einc::test
