// SPDX-License-Identifier: Apache-2.0
// Context parallelism as devices carry it out: results of the whole program, bytes as foretold.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <optional>
#include <string>

#include "compiler/api/render_report.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/lower/attention.h"
#include "compiler/partition/device_program.h"
#include "compiler/report/mesh_step.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/context_programs.h"
#include "tests/support/mesh_examples.h"
#include "tests/support/thread_transport.h"

using namespace einc;

namespace {

// Each program with its keys gathered or, `keys`, going round: results of the whole program, bytes as foretold, bits of any thread count.
void check_devices(bool keys, int64_t length) {
  for (const ContextProgram& program : context_programs())
    for (const std::string mesh : {"context = 4", "data = 2, context = 2"}) {
      CAPTURE(program.name);
      CAPTURE(mesh);
      const Compilation c = compiled_text(with_length(text_of(program, mesh, shard_lines(mesh, keys)), length));
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

}  // namespace

TEST_CASE("context: devices give what the program gives whole, and send what the report says") { check_devices(false, 8); }
// Long enough for kernels of attention, whose rows skip keys by the device's coordinate.
TEST_CASE("context: kernels that skip keys by the device's coordinate") { check_devices(false, 80); }
TEST_CASE("ring: devices give what the program gives whole, and send what the report says") { check_devices(true, 8); }
TEST_CASE("ring: each step as a kernel of attention") { check_devices(true, 80); }

namespace {

std::string causal_on(int devices, bool keys) {
  const std::string mesh = "context = " + std::to_string(devices);
  return text_of(context_programs()[1], mesh, shard_lines(mesh, keys));
}
std::string ring_of(int devices) { return causal_on(devices, true); }

std::string ring_run_problem(const std::string& text, const std::function<bool(MeshPlan&)>& fault) {
  const Compilation c = compiled_text(text);
  const auto compiled = compile_for_mesh(*c.graph, {}, RunMode::training);
  const ProgramData data = data_for(*c.graph, {});
  PerPart<MeshPlan> parts = compiled->parts();
  if (fault && !fault(*parts[Part::training])) return "nothing to spoil";
  const MeshProgram program(compiled->info, compiled->mesh(), parts, nullptr);
  return run_difference(program, data, interpreted(*c.graph, data), 2e-4);
}

// In 1, 2 and 4 processes.
void check_processes(const std::string& text) {
  const Compilation c = compiled_text(text);
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

}  // namespace

TEST_CASE("ring: devices in several processes make the same bits, and the same is sent") {
  for (const int64_t length : {8, 80}) check_processes(with_length(ring_of(4), length));
}
TEST_CASE("context: devices in several processes make the same bits, and the same is sent") {
  check_processes(with_length(causal_on(4, false), 80));
}

// Of keys and values a device holds a block of its own, one that it reads and one that is on its way; in the backward as much of gradients.
TEST_CASE("ring: a device holds as many blocks of others for any number of devices") {
  std::vector<int64_t> blocks;
  for (const int n : {4, 8}) {
    const Compilation c = compiled_text(ring_of(n));
    const auto compiled = compile_for_mesh(*c.graph, {}, RunMode::training);
    const int64_t block = 2 * 2 * 8 * 4 * 4 / n;  // f32[batch heads seq/n head]
    const int64_t most = most_held(*compiled->parts()[Part::training], CollectiveKind::shift);
    CHECK(most % block == 0);
    blocks.push_back(most / block);
  }
  CHECK(blocks[0] == blocks[1]);
  CHECK(blocks[1] <= 8);
}

namespace {

// What launches of a device work in: on eight devices, of a decoder whose scores are larger than all else.
int64_t working_bytes_of(int layers, const PlanStep& plan) {
  const std::string dims = fmt::format("batch=1 seq=32768 vocab=64 layers={} heads=4 head=32", layers);
  const Graph graph = *compiled({"gpt2.ein", dims.c_str(), "context=8", "seq=context; keys=context"}, Roots::step).graph;
  const auto made = partition_for_mesh(graph, dims_of(dims));
  return mesh_step(localize(std::get<Partitioned>(made)), dims_of(dims), plan, nullptr, nullptr, {}).working;
}

}  // namespace

// Not those of one step lie there, and nothing of them from the forward to the backward.
TEST_CASE("ring: scores of a step are larger than what launches work in") {
  constexpr int64_t kScores = int64_t{4} * 4096 * 4096 * 4;
  const PlanStep plan = plan_for_processor(native_processor(), {});
  const int64_t few = working_bytes_of(2, plan), more = working_bytes_of(4, plan);
  CHECK(few < kScores / 2);
  CHECK(more - few < kScores / 4);
}

namespace {

Localized device_of_llama(const std::string& dims, const std::string& shard) {
  const Graph graph = *compiled({"llama.ein", dims.c_str(), "context=4", shard.c_str()}, Roots::step).graph;
  return localize(std::get<Partitioned>(partition_for_mesh(graph, dims_of(dims))));
}

}  // namespace

// Each step is attention by itself, in the forward and in the backward (on a GPU of two kernels), and scores lie nowhere in memory; nor
// does a mask, a number for each row and key, which is made where it is read. In zigzag order every device makes half of the pairs at each
// step, as with gathered keys.
TEST_CASE("ring: each step is kernels of attention, and nothing of all rows and keys lies in memory") {
  constexpr int64_t kPairs = int64_t{8192} * 8192;  // of a head
  for (const std::string shard : {"seq=context; keys=context", "seq=context"})
    for (const bool gpu : {false, true})
      for (const int layers : {1, 3}) {
        CAPTURE(shard);
        CAPTURE(gpu);
        CAPTURE(layers);
        const std::string dims = fmt::format("batch=1 seq=32768 vocab=64 layers={} embed=512 heads=8 kv_heads=2 ffn=64", layers);
        const PlanStep plan = gpu ? plan_for_device({}, *find_device("h100-sxm")) : plan_for_processor(native_processor(), {});
        const Localized local = device_of_llama(dims, shard);
        const DeviceProgram program = device_program(local);
        const PlannedStep step = plan(program.graph, dims_of(dims), RunMode::training, nullptr);
        int attentions = 0;
        int64_t largest = 0, pairs = 0;
        for (const GraphKernel& k : step.formed->list.kernels) {
          if (k.kernel->attention) ++attentions, pairs += pairs_made(*k.kernel);
          for (const BufferUse& b : k.kernel->buffers) largest = std::max(largest, b.count);
        }
        const bool ring = shard.find("keys") != std::string::npos;
        CHECK(attentions == (ring ? 4 : 1) * (gpu ? 3 : 2) * layers);
        CHECK(largest < kPairs / 4);
        const double all = static_cast<double>(kPairs) * 4 * 8 * (gpu ? 3 : 2) * layers;  // of a device's rows and all keys, 8 heads
        CHECK(static_cast<double>(pairs) < 0.503 * all);
      }
}

TEST_CASE("ring: faults of a plan are found") {
  const std::string text = ring_of(4);
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
