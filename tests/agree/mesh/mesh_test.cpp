// SPDX-License-Identifier: Apache-2.0
// A program carried out by the devices of a mesh gives what it gives whole; to the bit where sums are exact. What the devices send is what
// the report says, to the byte. Faults that a plan could have are planted and found.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cmath>
#include <cstring>
#include <optional>

#include "compiler/ir/text.h"
#include "compiler/pipeline/pipeline.h"
#include "dsl/render.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/fake_link.h"
#include "tests/support/partition_check.h"
#include "tests/support/random_check.h"
#include "tests/support/thread_transport.h"
#include "tests/support/zoo.h"

using namespace einc;

TEST_CASE("mesh: examples give what they give whole, and send what the report says") {
  for (const MeshExample& example : mesh_examples()) {
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

std::string wrong_mesh_run(const std::string& text, uint64_t seed) {
  std::string problem;
  std::optional<Wanted> given = interpret_text(text, seed, problem, seed % 4 == 0 ? RunMode::inference : RunMode::training);
  if (!given) return problem;
  given->graph.mesh = random_mesh(given->graph, given->graph.dims.bind({}).values, seed);
  if (std::holds_alternative<NoPartition>(partition(given->graph, {}))) return "";
  std::shared_ptr<const MeshProgram> program;
  try {
    program = compile_for_mesh(given->graph, {}, given->options.mode);
  } catch (const Error& error) {
    return std::string("program: ") + error.what();
  }
  const MeshRun run = run_on_mesh(*program, given->inputs, given->params, given->states, given->options, 1);
  if (counted_bytes(run.sent) != foretold_bytes(given->graph, {})) return "bytes: not those foretold";
  if (run.fault != NonFinite::nothing) return "";
  const std::string certain = certain_difference(*given, run.values);
  return certain.empty() ? "" : "value: " + certain;
}

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

TEST_CASE("mesh: what is not finite on one device is stored on none") {
  const Compilation c = compile_text("m.ein",
                                     "mesh data = 3\nshard n over data\ninput x: f32[n=9]\nparam w: [n] ~ ones\nloss = sum(w * x)\n"
                                     "minimize loss using momentum(lr = 0.1)\n",
                                     {});
  REQUIRE(c.graph.has_value());
  const auto program = compile_for_mesh(*c.graph, {}, RunMode::training);
  const ProgramData good = data_for(*c.graph, {});
  ProgramData loss = good, moment = good;  // all devices learn of the one, one device alone of the other
  loss.params.begin()->second.reals.back() = HUGE_VAL;
  REQUIRE(moment.states.begin()->second.reals.size() == 9);
  moment.states.begin()->second.reals.back() = std::nan("");
  const std::pair<const ProgramData*, NonFinite> rows[] = {
      {&good, NonFinite::nothing}, {&loss, NonFinite::loss}, {&moment, NonFinite::state}};
  for (const auto& [data, wanted] : rows) {
    ThreadTransport transport(3);
    std::vector<NonFinite> faults(3);
    transport.run([&](const EincTransport& end) {
      const MeshProgram own(program->info, program->mesh(), program->parts(), &end);
      faults[static_cast<size_t>(end.rank)] = run_on_mesh(own, data->inputs, data->params, data->states, data->options, 1).fault;
    });
    for (const NonFinite fault : faults) CHECK(fault == wanted);
  }
}

namespace {

// Of the pages that lie wholly in the memory, how many are in the machine's.
int64_t pages_in_use(const std::byte* begin, int64_t bytes) {
  const auto page = static_cast<uintptr_t>(::sysconf(_SC_PAGESIZE));
  const uintptr_t first = (reinterpret_cast<uintptr_t>(begin) + page - 1) / page,
                  last = (reinterpret_cast<uintptr_t>(begin) + static_cast<uintptr_t>(bytes)) / page;
  std::vector<unsigned char> in_use(last - first);
  REQUIRE(mincore(reinterpret_cast<void*>(first * page), (last - first) * page, in_use.data()) == 0);
  return std::ranges::count_if(in_use, [](unsigned char b) { return (b & 1) != 0; });
}

}  // namespace

TEST_CASE("mesh: what devices hold lies whole in memory only while it is read") {
  const Compilation c =
      compile_text("m.ein",
                   "mesh data = 2\nshard batch over data\nshard params over data\ninput x: f32[batch=4 n=256]\n"
                   "param w: [n m=256] ~ ones\ny = einsum(x, w, \"batch n, n m -> batch m\")\noutput y\nloss = mean(y^2)\n"
                   "minimize loss using momentum(lr = 0.1)\n",
                   {});
  REQUIRE(c.graph.has_value());
  const auto program = compile_for_mesh(*c.graph, {}, RunMode::training);
  const ProgramData data = data_for(*c.graph, {});
  const BoundRun plain = start_on_mesh(*program, data, 1);
  const BoundRun given = start_on_mesh(*program, data, 1);
  const Source w{SourceKind::param, 0};
  const int64_t bytes = program->info.params[0].bytes();
  Mapping memory(bytes);
  std::memcpy(memory.base(), given.memory[1][0].bytes.data(), static_cast<size_t>(bytes));
  given.runner->bind(w, memory.base());
  given.runner->release(w);
  CHECK(pages_in_use(memory.base(), bytes) == 0);
  const auto equal = [&] {
    plain.runner->fetch(w), given.runner->fetch(w);
    return std::memcmp(memory.base(), plain.memory[1][0].bytes.data(), static_cast<size_t>(bytes)) == 0;
  };
  for (uint64_t step = 0; step < 3; ++step) {
    for (const BoundRun* run : {&plain, &given}) REQUIRE(run->runner->run_while_finite(Part::training, 1, step) == NonFinite::nothing);
    CHECK(pages_in_use(memory.base(), bytes) == 0);
    if (step == 1) CHECK(equal());
  }
  CHECK(equal());
  CHECK(pages_in_use(memory.base(), bytes) > 0);
  // What is written there is what the devices take.
  std::memset(memory.base(), 0, static_cast<size_t>(bytes));
  given.runner->run_while_finite(Part::training, 1, 3);
  std::memset(memory.base(), 0, static_cast<size_t>(bytes));
  given.runner->bind(w, memory.base());
  given.runner->release(w);
  given.runner->fetch(w);
  CHECK(std::ranges::all_of(std::span(memory.base(), static_cast<size_t>(bytes)), [](std::byte b) { return b == std::byte{0}; }));
}

TEST_CASE("mesh: values that are not needed at once lie in one place") {
  const MeshExample example{"gpt2.ein", "batch=4 seq=6 vocab=16 layers=6 heads=4 head=4", "data=2", "batch=data; params=data"};
  const Graph graph = *compiled(example).graph;
  const auto program = compile_for_mesh(graph, dims_of(example.dims), RunMode::training);
  const MeshPlan& plan = *program->parts()[Part::training];
  int64_t apart = 0;
  for (const DeviceTensor& value : plan.values) apart += value.bytes;
  CHECK(plan.bytes < apart * 4 / 5);
}

namespace {

// The most bytes that results of gathers hold at once, from the start of one to the last launch that reads it.
int64_t most_gathered(const MeshPlan& plan) {
  std::vector<int64_t> change(plan.steps.size() + 1, 0);
  for (size_t t = 0; t < plan.steps.size(); ++t) {
    const DeviceStep& start = plan.steps[t];
    if (start.act != DeviceAct::start || plan.collectives[start.index].kind != CollectiveKind::all_gather) continue;
    const uint32_t value = plan.collectives[start.index].to;
    size_t last = t;
    for (size_t u = t; u < plan.steps.size(); ++u)
      if (const DeviceStep& step = plan.steps[u]; step.act == DeviceAct::compute)
        for (const StageRead& read : plan.stages[step.index].reads)
          for (uint32_t l = step.first; l < step.last; ++l)
            if (read.value == value && std::ranges::count(plan.stages[step.index].compute.program.launches[l].buffers, read.buffer) > 0)
              last = u;
    change[t] += plan.values[value].bytes;
    change[last + 1] -= plan.values[value].bytes;
  }
  int64_t now = 0, most = 0;
  for (const int64_t by : change) most = std::max(most, now += by);
  return most;
}

}  // namespace

TEST_CASE("mesh: of a model whose params are spread no more than two layers are whole at once") {
  const auto gathered = [](int layers) {
    const std::string dims = fmt::format("batch=4 seq=6 vocab=16 layers={} heads=4 head=4", layers);
    const MeshExample example{"gpt2.ein", dims.c_str(), "data=2", "batch=data; params=data"};
    return most_gathered(*compile_for_mesh(*compiled(example).graph, dims_of(example.dims), RunMode::training)->parts()[Part::training]);
  };
  const int64_t embed = 16, layer = (12 * embed * embed + 13 * embed) * 4, table = (16 + 6) * embed * 4;
  CHECK(gathered(6) == gathered(3));
  CHECK(gathered(6) >= 2 * layer - 13 * embed * 4);  // biases and norms end before the rest
  CHECK(gathered(6) <= 2 * layer + table);
}

TEST_CASE("mesh: gradients are summed as the backward makes them, behind which the rest of it goes on") {
  const MeshExample example{"gpt2.ein", "batch=4 seq=6 vocab=16 layers=4 heads=4 head=4", "data=2", "batch=data"};
  const auto program = compile_for_mesh(*compiled(example).graph, dims_of(example.dims), RunMode::training);
  const MeshPlan& plan = *program->parts()[Part::training];
  size_t started = 0, beside = 0;  // sums of whole params, and those that launches of the same stage go on beside
  for (size_t t = 0; t < plan.steps.size(); ++t) {
    const DeviceStep& start = plan.steps[t];
    if (start.act != DeviceAct::start || plan.values[plan.collectives[start.index].from].shape.empty()) continue;
    ++started;
    const auto next = std::find_if(plan.steps.begin() + static_cast<std::ptrdiff_t>(t), plan.steps.end(),
                                   [](const DeviceStep& step) { return step.act != DeviceAct::start; });
    beside += next != plan.steps.end() && next->act == DeviceAct::compute && next->first > 0;
  }
  CHECK(started == 4 * 12 + 4);
  CHECK(beside >= started - 1);  // the last is waited for
}

TEST_CASE("mesh: random programs on random meshes") { check_random_programs(1, 150, wrong_mesh_run); }

TEST_CASE("mesh: programs that were once compiled wrongly, on random meshes") { check_regress_programs(wrong_mesh_run); }
