// SPDX-License-Identifier: Apache-2.0
// A program carried out by the devices of a mesh gives what it gives whole; to the bit where sums are exact. What the devices send is what
// the report says, to the byte. Faults that a plan could have are planted and found.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <cmath>
#include <optional>

#include "compiler/ir/text.h"
#include "compiler/pipeline/pipeline.h"
#include "dsl/render.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/fake_link.h"
#include "tests/support/partition_check.h"
#include "tests/support/random_check.h"
#include "tests/support/sample.h"
#include "tests/support/thread_transport.h"
#include "tests/support/zoo.h"

using namespace einc;

TEST_CASE("mesh: examples give what they give whole, and send what the report says") {
  for (const MeshExample& example : sampled(mesh_examples(), 2)) {
    INFO(fmt::format("{} on {}, {}", example.file, example.mesh, example.shard));
    const Graph graph = *compiled(example).graph;
    const Bindings dims = dims_of(example.dims);
    const auto program = compile_for_mesh(graph, dims, RunMode::training);
    const ProgramData data = data_for(graph, dims);
    const MeshRun run = run_on_mesh(*program, data.inputs, data.params, data.states, data.options, 1);
    REQUIRE(run.fault == NonFinite::nothing);
    const InterpretResult wanted = interpreted(graph, data);
    CHECK(result_difference(as_result(run.values, wanted), wanted, example.tolerance) == "");
    CHECK(counted_bytes(run.sent) == foretold_bytes(graph, dims));
    CHECK(device_graph_problem(graph, dims) == "");
    for (const int threads : {2, 5}) {
      const MeshRun other = run_on_mesh(*program, data.inputs, data.params, data.states, data.options, threads);
      CHECK(same_bits(run.values, other.values));
    }
  }
}

namespace {

std::string wrong_mesh_run(const std::string& text, uint64_t seed) { return wrong_run(text, seed, compile_for_mesh); }

}  // namespace

TEST_CASE("mesh: whole numbers have equal bits on meshes up to 8 devices") {
  std::string problem;
  for (uint64_t seed = 0; seed < 22; ++seed) {
    std::optional<Wanted> given = interpret_text(kWholeNumbers, seed, problem);
    REQUIRE_MESSAGE(given.has_value(), problem);
    set_whole_numbers(given->inputs, seed);
    set_whole_numbers(given->params, seed);
    set_whole_numbers(given->states, seed);
    given->graph.mesh = random_mesh(given->graph, given->graph.dims.bind({}).values, seed);
    const auto program = compile_for_mesh(given->graph, {}, RunMode::training);
    const ProgramData data{{}, given->inputs, given->params, given->states, {}};
    CAPTURE(seed);
    CHECK(run_difference(*program, data, interpreted(given->graph, data), 0) == "");
  }
}

TEST_CASE("mesh: devices in several processes make the same bits, and the same is sent") {
  for (const MeshExample& example : mesh_examples()) {
    const Graph graph = *compiled(example).graph;
    const Bindings dims = dims_of(example.dims);
    const auto program = compile_for_mesh(graph, dims, RunMode::training);
    const ProgramData data = data_for(graph, dims);
    const MeshRun alone = run_on_mesh(*program, data.inputs, data.params, data.states, data.options, 1);
    for (const int processes : {2, 4, 8}) {
      if (program->mesh().devices() % processes != 0) continue;
      INFO(fmt::format("{} on {}, {}: {} processes", example.file, example.mesh, example.shard, processes));
      ThreadTransport transport(processes);
      std::vector<std::optional<MeshRun>> runs(static_cast<size_t>(processes));
      transport.run([&](const EincTransport& end) {
        const MeshProgram own(program->info, program->mesh(), program->parts(), &end);
        runs[static_cast<size_t>(end.rank)] = run_on_mesh(own, data.inputs, data.params, data.states, data.options, 1);
      });
      for (const std::optional<MeshRun>& run : runs) {
        REQUIRE(run.has_value());
        CHECK(same_bits(run->values, alone.values));
        CHECK(counted_bytes(run->sent) == counted_bytes(alone.sent));
      }
    }
  }
}

TEST_CASE("mesh: on slow links, where launches run beside collectives, bits are the same") {
  for (const size_t number : {1, 3, 8, 15}) {
    const MeshExample& example = mesh_examples()[number];
    const Graph graph = *compiled(example).graph;
    const Bindings dims = dims_of(example.dims);
    const auto program = compile_for_mesh(graph, dims, RunMode::training);
    const ProgramData data = data_for(graph, dims);
    const MeshRun alone = run_on_mesh(*program, data.inputs, data.params, data.states, data.options, 1);
    ThreadTransport transport(2);
    std::vector<std::optional<MeshRun>> runs(2);
    transport.run([&](const EincTransport& end) {
      FakeLink link(end);
      link.set_bytes_per_second(1e6);
      const MeshProgram own(program->info, program->mesh(), program->parts(), &link.table());
      runs[static_cast<size_t>(end.rank)] = run_on_mesh(own, data.inputs, data.params, data.states, data.options, 2);
    });
    INFO(fmt::format("{} on {}, {}", example.file, example.mesh, example.shard));
    for (const std::optional<MeshRun>& run : runs) {
      REQUIRE(run.has_value());
      CHECK(same_bits(run->values, alone.values));
    }
  }
}

// Kernels must not hold both what a collective reads and what follows from its result: the maxima and sums of a softmax over keys that are
// split cross devices in the middle of what would be attention; one kernel of both ends of the chain below would wait for itself.
TEST_CASE("mesh: no kernel waits for a collective that waits for it") {
  for (const char* text :
       {"mesh model = 2\nshard keys over model\ninput q: f32[rows=6 d=8]\nparam k: [keys=8 d] ~ normal(std = 1)\n"
        "param v: [keys d] ~ normal(std = 1)\nscores = einsum(q, k, \"rows d, keys d -> rows keys\")\n"
        "y = einsum(softmax(scores, keys), v, \"rows keys, keys d -> rows d\")\noutput y\nloss = mean(y^2)\n"
        "minimize loss using sgd(lr = 0.1)\n",
        "mesh data = 2\nshard n over data\ninput x: f32[n=8 m=6]\nparam w: [m] ~ normal(std = 1)\na = tanh(x * w)\n"
        "b = a - mean(a, n)\nc = b / sqrt(mean(b^2, n) + 1e-3)\noutput c\nloss = mean((c - a)^4)\nminimize loss using sgd(lr = 0.1)\n"}) {
    INFO(text);
    const Compilation c = compile_text("m.ein", text, {});
    REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
    const auto program = compile_for_mesh(*c.graph, {}, RunMode::training);
    const MeshPlan& plan = *program->parts()[Part::training];
    CHECK(std::ranges::any_of(plan.collectives, [](const MeshCollective& m) { return m.kind == CollectiveKind::all_reduce; }));
    const ProgramData data = data_for(*c.graph, {});
    CHECK(run_difference(*program, data, interpreted(*c.graph, data), 2e-4) == "");
  }
}

TEST_CASE("mesh: random programs on random meshes") { check_random_programs(1, 150, wrong_mesh_run); }

TEST_CASE("mesh: programs that were once compiled wrongly, on random meshes") { check_regress_programs(wrong_mesh_run); }
