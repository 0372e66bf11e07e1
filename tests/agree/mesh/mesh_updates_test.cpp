// SPDX-License-Identifier: Apache-2.0
// What a step over a mesh stores: where the old values lie, on all devices or on none.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>

#include "compiler/api/verify_mesh.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/random_check.h"
#include "tests/support/thread_transport.h"

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

struct Ended {
  NonFinite fault = NonFinite::nothing;
  bool unchanged = true;  // params and states hold what they were given
};
Ended ended_run(BoundRun& run) {
  const std::vector<HostArray> params = run.memory[1], states = run.memory[2];
  Ended end;
  end.fault = run.runner->run_while_finite(Part::training, 1, 0);
  const auto is_as_before = [&](SourceKind kind, const std::vector<HostArray>& before) {
    for (uint32_t i = 0; i < before.size(); ++i) {
      run.runner->fetch({kind, i});
      if (run.memory[static_cast<size_t>(kind)][i].bytes != before[i].bytes) return false;
    }
    return true;
  };
  const bool params_stay = is_as_before(SourceKind::param, params), states_stay = is_as_before(SourceKind::state, states);
  end.unchanged = params_stay && states_stay;
  return end;
}

Ended ended(const MeshProgram& program, const ProgramData& data) {
  BoundRun run = start_on_mesh(program, data, 1);
  return ended_run(run);
}

size_t in_places_of_their_own(const MeshPlan& plan) {
  return static_cast<size_t>(
      std::ranges::count_if(plan.updates, [&](const MeshUpdate& u) { return u.value != plan.sources[u.source].value; }));
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
    CHECK(!ended(*program, data_for(graph, {})).unchanged);
    for (const auto& [data, wanted] : faulty_data(graph)) {
      const Ended alone = ended(*program, data);
      CHECK(alone.fault == wanted);
      CHECK(alone.unchanged);
      ThreadTransport transport(3);
      std::vector<Ended> ends(3);
      transport.run([&](const EincTransport& end) {
        const MeshProgram own(program->info, program->mesh(), program->parts(), &end);
        ends[static_cast<size_t>(end.rank)] = ended(own, data);
      });
      for (const Ended& end : ends) {
        CHECK(end.fault == wanted);
        CHECK(end.unchanged);
      }
    }
  }
}

// From the third run on a GPU plays what it has captured.
TEST_CASE("mesh on a GPU: what is not finite on one device is stored on none") {
  for (const char* lines : {kSplit, kMomentsSplit}) {
    INFO(std::string(lines));
    const Graph graph = momentum_on(lines);
    const auto program = compile_for_gpus(graph, {}, RunMode::training);
    CHECK(in_places_of_their_own(*program->parts()[Part::training]) == 0);
    for (const auto& [data, wanted] : faulty_data(graph)) {
      BoundRun run = start_on_mesh(*program, data, 1);
      for (int i = 0; i < 3; ++i) {
        const Ended end = ended_run(run);
        CHECK(end.fault == wanted);
        CHECK(end.unchanged);
      }
      const ProgramData good = data_for(graph, {});
      for (const SourceKind kind : {SourceKind::param, SourceKind::state}) {
        const TensorMap& values = kind == SourceKind::param ? good.params : good.states;
        const std::vector<TensorInfo>& list = sources_of(program->info, kind);
        for (uint32_t i = 0; i < list.size(); ++i) {
          std::ranges::copy(to_host(convert(values.at(Name(list[i].name)), list[i].dtype)).bytes,
                            run.memory[static_cast<size_t>(kind)][i].bytes.begin());
          run.runner->written({kind, i});
        }
      }
      CHECK(ended_run(run).fault == NonFinite::nothing);
    }
  }
}

TEST_CASE("mesh: devices that do not agree before they store are found") {
  const Graph graph = momentum_on(kMomentsSplit);
  const auto program = compile_for_mesh(graph, {}, RunMode::training);
  const auto agrees = [](const DeviceStep& step) { return step.act == DeviceAct::agree; };
  REQUIRE(std::ranges::count_if(program->parts()[Part::training]->steps, agrees) == 1);
  PerPart<MeshPlan> without = program->parts(), early = program->parts();
  std::erase_if(without[Part::training]->steps, agrees);
  std::vector<DeviceStep>& steps = early[Part::training]->steps;
  std::rotate(steps.begin(), std::ranges::find_if(steps, agrees), std::ranges::find_if(steps, agrees) + 1);
  for (const PerPart<MeshPlan>* parts : {&without, &early}) {
    CHECK(verify_mesh_plan(*(*parts)[Part::training]) != "");
    const MeshProgram spoilt(program->info, program->mesh(), *parts, nullptr);
    CHECK(!ended(spoilt, faulty_data(graph)[1].data).unchanged);
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
