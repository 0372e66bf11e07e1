// SPDX-License-Identifier: Apache-2.0
// Context parallelism as devices carry it out: results of the whole program, bytes as foretold.
#include <doctest/doctest.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/context_programs.h"
#include "tests/support/mesh_examples.h"
#include "tests/support/thread_transport.h"

using namespace einc;

TEST_CASE("context: devices give what the program gives whole, and send what the report says") {
  for (const ContextProgram& program : context_programs())
    for (const std::string mesh : {"context = 4", "data = 2, context = 2"}) {
      CAPTURE(program.name);
      CAPTURE(mesh);
      const std::string shard = mesh.starts_with("data") ? "shard batch over data\nshard seq over context\n" : "shard seq over context\n";
      const Compilation c = compiled_text(text_of(program, mesh, shard));
      const auto compiled = compile_for_mesh(*c.graph, {}, RunMode::training);
      const ProgramData data = data_for(*c.graph, {});
      const MeshRun run = run_on_mesh(*compiled, data.inputs, data.params, data.states, data.options, 1);
      REQUIRE(run.fault == NonFinite::nothing);
      const InterpretResult wanted = interpreted(*c.graph, data);
      CHECK(result_difference(as_result(run.values, wanted), wanted, 2e-4) == "");
      CHECK(counted_bytes(run.sent) == foretold_bytes(*c.graph, {}));
      CHECK(device_graph_problem(*c.graph, {}) == "");
    }
}

namespace {

constexpr const char* kRing = "shard seq over context\nshard keys over context\n";

// The most bytes of blocks from neighbours that are there at once, from the start of a shift to the last launch that reads its result.
int64_t most_met(const MeshPlan& plan) {
  std::vector<int64_t> change(plan.steps.size() + 1, 0);
  for (size_t t = 0; t < plan.steps.size(); ++t) {
    const DeviceStep& start = plan.steps[t];
    if (start.act != DeviceAct::start || plan.collectives[start.index].kind != CollectiveKind::shift) continue;
    const uint32_t value = plan.collectives[start.index].to;
    size_t last = t;
    for (size_t u = t; u < plan.steps.size(); ++u) {
      const DeviceStep& step = plan.steps[u];
      if (step.act == DeviceAct::start && plan.collectives[step.index].from == value) last = u;
      if (step.act != DeviceAct::compute) continue;
      for (const BoundValue& bound : plan.code.bound)
        for (uint32_t l = step.first; l < step.last; ++l)
          if (bound.value == value && may_run(plan.code, step, l) &&
              std::ranges::count(plan.code.compute.program.launches[l].buffers, bound.buffer) > 0)
            last = u;
    }
    change[t] += plan.values[value].bytes;
    change[last + 1] -= plan.values[value].bytes;
  }
  int64_t now = 0, most = 0;
  for (const int64_t by : change) most = std::max(most, now += by);
  return most;
}

std::string ring_run_problem(const std::string& text, const std::function<bool(MeshPlan&)>& fault) {
  const Compilation c = compiled_text(text);
  const auto compiled = compile_for_mesh(*c.graph, {}, RunMode::training);
  const ProgramData data = data_for(*c.graph, {});
  PerPart<MeshPlan> parts = compiled->parts();
  if (fault && !fault(*parts[Part::training])) return "nothing to spoil";
  const MeshProgram program(compiled->info, compiled->mesh(), parts, nullptr);
  return run_difference(program, data, interpreted(*c.graph, data), 2e-4);
}

}  // namespace

TEST_CASE("ring: devices give what the program gives whole, and send what the report says") {
  for (const ContextProgram& program : context_programs())
    for (const std::string mesh : {"context = 4", "data = 2, context = 2"}) {
      CAPTURE(program.name);
      CAPTURE(mesh);
      const Compilation c =
          compiled_text(text_of(program, mesh, mesh.starts_with("data") ? std::string("shard batch over data\n") + kRing : kRing));
      const auto compiled = compile_for_mesh(*c.graph, {}, RunMode::training);
      const ProgramData data = data_for(*c.graph, {});
      const MeshRun run = run_on_mesh(*compiled, data.inputs, data.params, data.states, data.options, 1);
      REQUIRE(run.fault == NonFinite::nothing);
      const InterpretResult wanted = interpreted(*c.graph, data);
      CHECK(result_difference(as_result(run.values, wanted), wanted, 2e-4) == "");
      CHECK(counted_bytes(run.sent) == foretold_bytes(*c.graph, {}));
      CHECK(device_graph_problem(*c.graph, {}) == "");
      const MeshRun again = run_on_mesh(*compiled, data.inputs, data.params, data.states, data.options, 3);
      CHECK(same_bits(again.values, run.values));
    }
}

TEST_CASE("ring: devices in several processes make the same bits, and the same is sent") {
  const Compilation c = compiled_text(text_of(context_programs()[1], "context = 4", kRing));
  const auto compiled = compile_for_mesh(*c.graph, {}, RunMode::training);
  const ProgramData data = data_for(*c.graph, {});
  const MeshRun alone = run_on_mesh(*compiled, data.inputs, data.params, data.states, data.options, 1);
  for (const int processes : {2, 4}) {
    CAPTURE(processes);
    ThreadTransport transport(processes);
    std::vector<std::optional<MeshRun>> runs(static_cast<size_t>(processes));
    transport.run([&](const EincTransport& end) {
      const MeshProgram own(compiled->info, compiled->mesh(), compiled->parts(), &end);
      runs[static_cast<size_t>(end.rank)] = run_on_mesh(own, data.inputs, data.params, data.states, data.options, 1);
    });
    for (const std::optional<MeshRun>& run : runs) {
      REQUIRE(run.has_value());
      CHECK(same_bits(run->values, alone.values));
      CHECK(counted_bytes(run->sent) == counted_bytes(alone.sent));
    }
  }
}

// Of keys and values a device holds a block of its own, one that it reads and one that is on its way; in the backward as much of gradients.
TEST_CASE("ring: a device holds as many blocks of others for any number of devices") {
  std::vector<int64_t> blocks;
  for (const int n : {4, 8}) {
    const Compilation c = compiled_text(text_of(context_programs()[1], "context = " + std::to_string(n), kRing));
    const auto compiled = compile_for_mesh(*c.graph, {}, RunMode::training);
    const int64_t block = 2 * 2 * 8 * 4 * 4 / n;  // f32[batch heads seq/n head]
    const int64_t most = most_met(*compiled->parts()[Part::training]);
    CHECK(most % block == 0);
    blocks.push_back(most / block);
  }
  CHECK(blocks[0] == blocks[1]);
  CHECK(blocks[1] <= 8);
}

TEST_CASE("ring: faults of a plan are found") {
  const std::string text = text_of(context_programs()[1], "context = 4", kRing);
  CHECK(ring_run_problem(text, {}) == "");
  const auto stale = [](MeshPlan& plan) {
    for (MeshCollective& c : plan.collectives)
      for (const MeshCollective& before : plan.collectives)
        if (c.kind == CollectiveKind::shift && before.kind == CollectiveKind::shift && c.from == before.to)
          return c.from = before.from, true;
    return false;
  };
  const auto backwards = [](MeshPlan& plan) {
    for (MeshCollective& c : plan.collectives)
      if (c.kind == CollectiveKind::shift) return c.by = 3, true;
    return false;
  };
  for (const std::function<bool(MeshPlan&)>& fault : {std::function<bool(MeshPlan&)>(stale), std::function<bool(MeshPlan&)>(backwards)}) {
    const std::string problem = ring_run_problem(text, fault);
    CHECK(problem != "");
    CHECK(problem != "nothing to spoil");
  }
}
