// SPDX-License-Identifier: Apache-2.0
// When a plan for a mesh starts and waits, and what it holds meanwhile: layers that are whole, values in one place, pages of whole params.
#include <doctest/doctest.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>
#include <cstring>

#include "compiler/pipeline/pipeline.h"
#include "runtime/mesh/host_devices.h"
#include "tests/agree/mesh/mesh_run.h"

using namespace einc;

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

bool is_wait(const DeviceStep& step, uint32_t collective) { return step.act == DeviceAct::wait && step.index == collective; }

// Of what collectives of a kind read, from their starts until they are waited for.
int64_t most_on_way(const MeshPlan& plan, CollectiveKind kind) {
  int64_t now = 0, most = 0;
  for (const DeviceStep& step : plan.steps) {
    if (!is_collectives(step) || plan.collectives[step.index].kind != kind) continue;
    const int64_t bytes = plan.values[plan.collectives[step.index].from].bytes;
    most = std::max(most, now += step.act == DeviceAct::start ? bytes : -bytes);
  }
  return most;
}

// Of GPT-2's training step on two devices.
int64_t of_layers(int layers, const char* shard, CollectiveKind kind, int64_t (*most)(const MeshPlan&, CollectiveKind)) {
  const std::string dims = fmt::format("batch=4 seq=6 vocab=16 layers={} heads=4 head=4", layers);
  const MeshExample example{"gpt2.ein", dims.c_str(), "data=2", shard};
  const auto program = compile_for_mesh(*compiled(example).graph, dims_of(example.dims), RunMode::training);
  return most(*program->parts()[Part::training], kind);
}
constexpr int64_t kEmbed = 16, kLayer = (12 * kEmbed * kEmbed + 13 * kEmbed) * 4, kLargest = 4 * kEmbed * kEmbed * 4;

}  // namespace

TEST_CASE("mesh: of a model whose params are spread less than two layers are whole at once, and one ahead") {
  const auto gathered = [](int layers) { return of_layers(layers, "batch=data; params=data", CollectiveKind::all_gather, most_held); };
  CHECK(gathered(6) == gathered(3));
  // What the next layer reads is put together as this one reads its own, one by one: the largest param is there twice.
  CHECK(gathered(6) >= kLayer + kLargest);
  CHECK(gathered(6) < 2 * kLayer);
}

TEST_CASE("mesh: gradients of two layers are on their way, of any number") {
  const auto on_way = [](int layers) {
    return of_layers(layers, "batch=data; gradients=data", CollectiveKind::reduce_scatter, most_on_way);
  };
  CHECK(on_way(8) == on_way(4));
  CHECK(on_way(8) > kLayer);
  CHECK(on_way(8) <= 2 * kLayer + kLargest);  // one is started before another is waited for
}

TEST_CASE("mesh: gradients are summed as the backward makes them, behind which the rest of it goes on") {
  const MeshExample example{"gpt2.ein", "batch=4 seq=6 vocab=16 layers=4 heads=4 head=4", "data=2", "batch=data"};
  const auto program = compile_for_mesh(*compiled(example).graph, dims_of(example.dims), RunMode::training);
  const MeshPlan& plan = *program->parts()[Part::training];
  size_t started = 0, beside = 0;  // sums of whole params, and those that launches go on beside
  for (size_t t = 0; t < plan.steps.size(); ++t) {
    const DeviceStep& start = plan.steps[t];
    if (start.act != DeviceAct::start || plan.values[plan.collectives[start.index].from].shape.empty()) continue;
    ++started;
    const auto from = plan.steps.begin() + static_cast<std::ptrdiff_t>(t);
    const auto wait = std::find_if(from, plan.steps.end(), [&](const DeviceStep& step) { return is_wait(step, start.index); });
    beside += std::any_of(from, wait, [](const DeviceStep& step) { return step.act == DeviceAct::compute && step.first > 0; });
  }
  CHECK(started == 4 * 12 + 4);
  CHECK(beside >= started - 1);  // the last is waited for
}

TEST_CASE("mesh: gradients of weights are made beside the sum that the next layer waits for, and summed behind it") {
  const MeshExample example{"gpt2.ein", "batch=4 seq=6 vocab=16 layers=3 heads=4 head=4", "data=2,model=2",
                            "batch=data; heads,hidden=model"};
  const auto program = compile_for_mesh(*compiled(example).graph, dims_of(example.dims), RunMode::training);
  const MeshPlan& plan = *program->parts()[Part::training];
  int over_model = 0, beside = 0;
  for (size_t t = 0; t < plan.steps.size(); ++t) {
    const DeviceStep& start = plan.steps[t];
    if (start.act != DeviceAct::start || plan.collectives[start.index].mesh_axis != 1) continue;
    ++over_model;
    const auto waits = [&](const DeviceStep& step) { return is_wait(step, start.index); };
    const size_t end = static_cast<size_t>(std::ranges::find_if(plan.steps, waits) - plan.steps.begin());
    for (size_t u = t; u < end; ++u) {
      const DeviceStep& step = plan.steps[u];
      for (uint32_t l = step.first; step.act == DeviceAct::compute && l < step.last; ++l)
        if (const Launch& launch = plan.code.compute.program.launches[l]; !is_collective(launch))
          beside += launch.label.find(" d w_") != std::string::npos;
    }
    // Sums over data that started before this one at the same place are behind it.
    if (t > 0 && plan.steps[t - 1].act == DeviceAct::start) CHECK(plan.collectives[plan.steps[t - 1].index].mesh_axis == 1);
  }
  CHECK(over_model == 4 * 3 + 1);  // and the squares of all gradients
  CHECK(beside == 4 * 3);          // w_qkv, w_out, w_up and w_down of each layer
}

namespace {

struct TakenBytes {
  int64_t planned = 0;  // by all devices and their process
  int64_t largest = 0;  // of what a device computes, the largest value in memory
};

TakenBytes taken_by_gpt2(int seq, const char* mesh, const char* shard) {
  const std::string dims = fmt::format("batch=2 seq={} vocab=16 layers=2 heads=2 head=8", seq);
  const auto program = compile_for_mesh(*compiled({"gpt2.ein", dims.c_str(), mesh, shard}).graph, dims_of(dims), RunMode::training);
  TakenBytes taken{program->planned_bytes(1), 0};
  for (const ExecutableBuffer& buffer : program->parts()[Part::training]->code.compute.program.buffers)
    taken.largest = std::max(taken.largest, buffer.bytes);
  return taken;
}

}  // namespace

// Where the forward of a layer holds collectives, its attention's backward still makes the weights again.
TEST_CASE("mesh: attention whose heads are split stores no weights: memory grows with the sequence, not with its square") {
  for (const auto& [mesh, shard] : {std::pair("model=2", "heads,hidden=model"), std::pair("data=2", "batch=data")}) {
    INFO(shard);
    const TakenBytes half = taken_by_gpt2(512, mesh, shard), whole = taken_by_gpt2(1024, mesh, shard);
    CHECK(static_cast<double>(whole.planned) < 2.1 * static_cast<double>(half.planned));
    CHECK(whole.largest < int64_t{1024} * 1024 * 4);  // weights of one head
  }
}

// The numbers are those of the whole batch, of which a device makes its part.
TEST_CASE("mesh: of what a dropout draws a device makes its own part: memory does not grow with the devices") {
  const auto working = [](int devices) {
    const Compilation c = compile_text(
        "m.ein",
        fmt::format(
            "mesh data = {0}\nshard batch over data\ninput x: f32[batch={1} heads=2 seq=64 head=8]\nparam w: [head out=8] ~ ones\n"
            "k: [batch heads key head] = x\nq = einsum(x, w, \"... head, head out -> ... out\")\n"
            "scores = einsum(q, k, \"batch heads seq head, batch heads key head -> batch heads seq key\")\n"
            "y = einsum(dropout(softmax(scores, key), 0.1), k, \"batch heads seq key, batch heads key head -> batch heads seq head\")\n"
            "noise = normal(batch, heads, seq, head)\nloss = mean(dropout(y + 0.1 * noise, 0.5)^2)\nminimize loss using momentum(lr = "
            "0.1)\n",
            devices, 2 * devices),
        {});
    REQUIRE(c.graph.has_value());
    const auto program = compile_for_mesh(*c.graph, {}, RunMode::training);
    return working_bytes(*program->parts()[Part::training], 1);
  };
  CHECK(working(8) == working(2));
}
