// SPDX-License-Identifier: Apache-2.0
// What a step over a mesh stores: where the old values lie, on all devices or on none.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/api/verify_mesh.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/random_check.h"

using namespace einc;

namespace {

Graph graph_of(const std::string& text) {
  const Compilation c = compile_text("m.ein", text, {});
  REQUIRE_MESSAGE(c.graph.has_value(), text);
  return *c.graph;
}

// Of a momentum's step over nine numbers; by the mesh's lines.
Graph momentum_on(const std::string& lines) {
  return graph_of(lines +
                  "input x: f32[n=9]\nparam w: [n] ~ ones\nloss = sum(w * x)\n"
                  "minimize loss using momentum(lr = 0.1)\n");
}
constexpr const char* kSplit = "mesh data = 3\nshard n over data\n";
constexpr const char* kMomentsSplit = "mesh data = 3\nshard states over data\n";  // new params are gathered

struct Faulty {
  ProgramData data;
  NonFinite wanted;
};
// All devices learn of a loss; one device alone has the moment.
std::vector<Faulty> faulty_data(const Graph& graph) {
  std::vector<Faulty> rows(2, {data_for(graph, {}), NonFinite::loss});
  rows[0].data.params.begin()->second.reals.back() = HUGE_VAL;
  rows[1].wanted = NonFinite::state;
  rows[1].data.states.begin()->second.reals.back() = std::nan("");
  return rows;
}

// An update that reads what another one replaces.
const std::string kAverage =
    "input x: f32[n=4 k=8]\nparam w: [k] ~ normal\nstate average: [k] ~ zeros\n"
    "loss = mean(einsum(x, w, \"n k, k -> n\")^2)\naverage <- 0.5 * average + 0.5 * w\nminimize loss using momentum(lr = 0.1)\n";

}  // namespace

TEST_CASE("mesh: what is not finite on one device is stored on none") {
  for (const char* lines : {kSplit, kMomentsSplit}) {
    INFO(std::string(lines));
    const Graph graph = momentum_on(lines);
    const auto program = compile_for_mesh(graph, {}, RunMode::training);
    for (const auto& [data, wanted] : faulty_data(graph)) {
      const Ended alone = ended(*program, data, data_for(graph, {}));
      CHECK(alone.fault == wanted);
      CHECK(alone.nothing_stored);
      for (const Ended& end : in_processes(*program, 3, [&](const MeshProgram& own) { return ended(own, data, data_for(graph, {})); })) {
        CHECK(end.fault == wanted);
        CHECK(end.nothing_stored);
      }
    }
  }
}

namespace {

// Of its own parts the first device finds a moment, the last one a gradient.
constexpr const char* kSeveralFaults =
    "mesh data = 3\nshard n over data\ninput x: f32[n=9]\nparam w: [n] ~ ones\nloss = sum(sqrt(w) * x)\n"
    "minimize loss using momentum(lr = 0.1)\n";
std::pair<ProgramData, ProgramData> faulty_and_good(const Graph& graph) {
  ProgramData good = data_for(graph, {});
  for (double& w : good.params.begin()->second.reals) w = 1;
  ProgramData faulty = good;
  faulty.params.begin()->second.reals.back() = 0;
  faulty.states.begin()->second.reals.front() = std::nan("");
  return {faulty, good};
}

}  // namespace

TEST_CASE("mesh: of what devices find that is told which the whole program finds first") {
  const Graph graph = graph_of(kSeveralFaults);
  const auto program = compile_for_mesh(graph, {}, RunMode::training);
  const std::pair<ProgramData, ProgramData> rows = faulty_and_good(graph);
  const ProgramData &faulty = rows.first, &good = rows.second;
  for (const int processes : {1, 3})
    for (const Ended& made : in_processes(*program, processes, [&](const MeshProgram& own) { return ended(own, faulty, good); })) {
      CHECK(made.fault == NonFinite::gradient);
      CHECK(made.nothing_stored);
    }
}

TEST_CASE("mesh on a GPU: of what devices find that is told which the whole program finds first") {
  const Graph graph = graph_of(kSeveralFaults);
  const auto program = compile_for_gpus(graph, {}, RunMode::training);
  const auto [faulty, good] = faulty_and_good(graph);
  const Ended made = ended(*program, faulty, good);
  CHECK(made.fault == NonFinite::gradient);
  CHECK(made.nothing_stored);
}

// From the third run on a GPU plays what it has captured.
TEST_CASE("mesh on a GPU: what is not finite on one device is stored on none") {
  for (const char* lines : {kSplit, kMomentsSplit}) {
    INFO(std::string(lines));
    const Graph graph = momentum_on(lines);
    const auto program = compile_for_gpus(graph, {}, RunMode::training);
    CHECK(in_places_of_their_own(*program->parts()[Part::training]) == 0);
    for (const auto& [data, wanted] : faulty_data(graph)) {
      const Ended end = ended(*program, data, data_for(graph, {}), 3);
      CHECK(end.fault == wanted);
      CHECK(end.nothing_stored);
    }
  }
}

TEST_CASE("mesh: devices that do not agree before they store are found") {
  const Graph graph = momentum_on(kMomentsSplit);
  const auto program = compile_for_mesh(graph, {}, RunMode::training);
  const auto agrees = [](const DeviceStep& step) { return step.act == DeviceAct::agree; };
  REQUIRE(std::ranges::count_if(program->parts()[Part::training]->steps, agrees) == 1);
  PerPart<MeshPlan> without = program->parts(), early = program->parts(), late = program->parts();
  std::erase_if(without[Part::training]->steps, agrees);
  std::vector<DeviceStep>&first = early[Part::training]->steps, &last = late[Part::training]->steps;
  std::rotate(first.begin(), std::ranges::find_if(first, agrees), std::ranges::find_if(first, agrees) + 1);
  std::rotate(std::ranges::find_if(last, agrees), std::ranges::find_if(last, agrees) + 1, last.end());
  for (const PerPart<MeshPlan>* parts : {&without, &early, &late}) {
    CHECK(verify_mesh_plan(*(*parts)[Part::training]) != "");
    const MeshProgram spoilt(program->info, program->mesh(), *parts, nullptr);
    const Faulty faulty = faulty_data(graph)[1];
    const Ended end = ended(spoilt, faulty.data, data_for(graph, {}));
    CHECK((end.fault != faulty.wanted || !end.nothing_stored));
  }
}

// Of a param whose new value is gathered.
TEST_CASE("mesh: a launch that reads an old value behind what replaces it is found") {
  const auto program = compile_for_mesh(momentum_on(kMomentsSplit), {}, RunMode::training);
  MeshPlan plan = *program->parts()[Part::training];
  REQUIRE(verify_mesh_plan(plan) == "");
  Executable& code = plan.code.compute.program;
  const auto reads = [&](const Launch& launch) {
    return !is_collective(launch) &&
           std::ranges::any_of(launch.buffers, [&](uint32_t b) { return code.buffers[b].role == BufferRole::param; });
  };
  const auto first = std::ranges::find_if(code.launches, reads);
  REQUIRE(first != code.launches.end());
  const Launch late = *first;
  const auto number = static_cast<uint32_t>(code.launches.size());
  code.launches.push_back(late);
  plan.steps.push_back({DeviceAct::compute, 0, number, number + 1});
  CHECK(verify_mesh_plan(plan).find("wants the old value") != std::string::npos);
}

TEST_CASE("mesh: new values lie where the old ones do") {
  for (const char* shard : {"batch=data", "batch=data; states=data", "batch=data; params=data", "heads,hidden,vocab=data"}) {
    INFO(std::string(shard));
    const MeshExample example{"gpt2.ein", "batch=4 seq=6 vocab=16 layers=2 heads=4 head=4", "data=2", shard};
    const auto program = compile_for_mesh(*compiled(example).graph, dims_of(example.dims), RunMode::training);
    const MeshPlan& plan = *program->parts()[Part::training];
    CHECK(plan.updates.size() > 2 * program->info.params.size());
    CHECK(in_places_of_their_own(plan) == 0);
    CHECK(plan.code.compute.program.copies.empty());
  }
}

// Norms and biases are a few bytes, weights are not. All layers' of a size are updated by one launch, and each goes with the one before.
TEST_CASE("mesh: gathers of a few bytes go in one move") {
  // Of a layer 4 weights and 8 others; both tables and the last norm; in the backward weights and norms' scales again.
  constexpr int kOnce = 12 * 3 + 4, kAgain = 6 * 3 + 2;
  for (const auto& [shard, count] : {std::pair("batch=data; states=data", kOnce), std::pair("batch=data; params=data", kOnce + kAgain)}) {
    INFO(std::string(shard));
    const MeshExample example{"gpt2.ein", "batch=4 seq=64 vocab=64 layers=3 heads=4 head=64", "data=2", shard};
    const auto program = compile_for_gpus(*compiled(example).graph, dims_of(example.dims), RunMode::training);
    const MeshPlan& plan = *program->parts()[Part::training];
    int gathers = 0, moves = 0;
    int64_t bytes = 0;  // that came in a move behind its first
    for (size_t s = 0; s < plan.steps.size(); ++s) {
      const DeviceStep& step = plan.steps[s];
      if (step.act != DeviceAct::start || plan.collectives[step.index].kind != CollectiveKind::all_gather) {
        CHECK(!step.joined);
        continue;
      }
      const int64_t part = plan.values[plan.collectives[step.index].from].bytes;
      ++gathers, moves += !step.joined;
      bytes = step.joined ? bytes + part : 0;
      CHECK(bytes <= 64 << 10);
      if (!step.joined) continue;
      CHECK(plan.steps[s - 1].act == DeviceAct::start);
      CHECK(plan.collectives[step.index - 1].kind == CollectiveKind::all_gather);
      CHECK(plan.collectives[step.index - 1].mesh_axis == plan.collectives[step.index].mesh_axis);
    }
    CHECK(gathers == count);
    CHECK(2 * moves <= gathers + 4);
  }
}

TEST_CASE("mesh: what another update reads is replaced behind it") {
  for (const char* shard : {"n over data", "n over data\nshard states over data", "n over data\nshard params over data"}) {
    const std::string text = fmt::format("mesh data = 2\nshard {}\n{}", shard, kAverage);
    CAPTURE(text);
    const Graph graph = graph_of(text);
    const ProgramData data = data_for(graph, {});
    const auto program = compile_for_mesh(graph, {}, RunMode::training);
    CHECK(run_difference(*program, data, interpreted(graph, data), 1e-5) == "");
  }
}
