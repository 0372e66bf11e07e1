// SPDX-License-Identifier: Apache-2.0
// A program carried out by the devices of a mesh gives what it gives whole; to the bit where sums are exact. What the devices send is what
// the report says, to the byte. Faults that a plan could have are planted and found.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <bit>
#include <functional>

#include "compiler/ir/text.h"
#include "compiler/pipeline/pipeline.h"
#include "dsl/render.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/partition_check.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/random_check.h"
#include "tests/support/thread_transport.h"
#include "tests/support/zoo.h"

using namespace einc;

namespace {

struct MeshExample {
  const char* file;
  const char* dims;  // small ones
  const char* mesh;
  const char* shard;
  double tolerance = 2e-4;
};

constexpr const char* kTinyGpt = "batch=4 seq=6 vocab=16 layers=2 heads=4 head=4";
constexpr MeshExample kMeshExamples[] = {
    {"gpt2.ein", kTinyGpt, "data=2,model=2", "batch=data; heads,hidden,vocab=model"},
    {"gpt2.ein", kTinyGpt, "data=2,model=2", "batch=data; heads,hidden,vocab=model; states=data"},
    {"gpt2.ein", kTinyGpt, "data=4", "batch=data; gradients=data"},
    {"gpt2.ein", kTinyGpt, "data=4,model=2", "batch=data; heads,hidden,vocab=model; params=data"},
    {"two_layer.ein", "batch=6 width=4 out=6", "data=3,model=2", "batch=data; out=model; states=data"},
    {"mlp.ein", "batch=8 features=6 hidden=4 classes=6", "data=2,model=2", "batch=data; hidden=model; params=data"},
    {"attention.ein", "batch=4 seq=6 heads=2 head=4", "data=2,model=2", "batch=data; heads=model; gradients=data"},
    {"cnn.ein", "batch=4 height=8 width=8", "data=4", "batch=data; states=data"},
    {"vit.ein", "batch=4 rows=2 cols=2 side=2 layers=1 heads=2 head=2", "data=2,model=2", "batch=data; heads,hidden=model"},
    {"lora.ein", "batch=4 width=6 out=8 rank=2", "pod=2,data=2,model=2", "batch=pod,data; out=model; states=data"},
    {"nanogpt.ein", "batch=4 seq=4 vocab=12 layers=1 heads=2 head=4", "data=2,context=2", "batch=data; seq=context; params=data"},
    {"shakespeare_char.ein", "batch=4 seq=4 vocab=12 layers=1 heads=2 head=4", "data=2,model=2", "batch=data; heads,hidden,vocab=model"},
    {"llama.ein", "batch=4 seq=4 vocab=12 layers=1 embed=8 heads=4 kv_heads=2 ffn=6", "data=2,model=2",
     "batch=data; kv_heads,ffn,vocab=model; params=data", 0.05}};  // bf16

Bindings dims_of(std::string_view text) {
  Bindings dims;
  while (!text.empty()) {
    const size_t end = std::min(text.find(' '), text.size()), sign = text.find('=');
    dims[Name(text.substr(0, sign))] = std::stoll(std::string(text.substr(sign + 1, end - sign - 1)));
    text.remove_prefix(std::min(end + 1, text.size()));
  }
  return dims;
}

Graph graph_of(const MeshExample& example) {
  PipelineOptions options;
  options.dims = dims_of(example.dims);
  options.mesh = example.mesh;
  options.shard = example.shard;
  const Compilation c = compile_file(std::string("examples/") + example.file, options);
  REQUIRE_MESSAGE(c.graph.has_value(), render_text(c.sources, c.diagnostics));
  return *c.graph;
}

ProgramData data_for(const Graph& graph, const Bindings& dims) {
  ProgramData data{dims, program_inputs(graph, dims, 1), initial_params(graph, dims, 1), initial_states(graph, dims, 1), {}};
  data.options.step = 3;
  return data;
}

InterpretResult interpreted(const Graph& graph, const ProgramData& data) {
  return interpret(graph, data.dims, data.inputs, data.params, data.states, data.options);
}

// Params that are trained.
InterpretResult as_result(CpuRun run, const InterpretResult& wanted) {
  std::erase_if(run.params, [&](const auto& param) { return !wanted.params.contains(param.first); });
  InterpretResult result;
  result.outputs = std::move(run.outputs);
  result.loss = std::move(run.loss);
  result.params = std::move(run.params);
  result.states = std::move(run.states);
  result.gradients = std::move(run.gradients);
  return result;
}

// "" or how a run of the devices differs from the interpreter's of the whole program.
std::string run_difference(const MeshProgram& program, const ProgramData& data, const InterpretResult& wanted, double tolerance) {
  const MeshRun run = run_on_mesh(program, data.inputs, data.params, data.states, data.options, 2);
  if (run.fault != NonFinite::nothing) return "not finite";
  return result_difference(as_result(run.values, wanted), wanted, tolerance);
}

}  // namespace

TEST_CASE("mesh: examples give what they give whole, and send what the report says") {
  for (const MeshExample& example : kMeshExamples) {
    INFO(fmt::format("{} on {}, {}", example.file, example.mesh, example.shard));
    const Graph graph = graph_of(example);
    const Bindings dims = dims_of(example.dims);
    const auto program = compile_for_mesh(graph, dims, RunMode::training);
    const ProgramData data = data_for(graph, dims);
    const MeshRun run = run_on_mesh(*program, data.inputs, data.params, data.states, data.options, 1);
    REQUIRE(run.fault == NonFinite::nothing);
    const InterpretResult wanted = interpreted(graph, data);
    CHECK(result_difference(as_result(run.values, wanted), wanted, example.tolerance) == "");
    CHECK(counted_bytes(run.sent) == foretold_bytes(graph, dims));
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

// Sums of whole numbers are exact in any order.
constexpr const char* kWholeNumbers = R"(
dim batch = 24, features = 24, hidden = 24, classes = 24
input x: f32[batch features]
input ids: i32[batch]
param table: [classes features] ~ normal(std = 1)
param w1: [features hidden] ~ normal(std = 1)
param b1: [hidden] ~ normal(std = 1)
param w2: [hidden classes] ~ normal(std = 1)
h = relu(einsum(x + table[classes = ids], w1, "batch features, features hidden -> batch hidden") + b1)
y = einsum(h, w2, "batch hidden, hidden classes -> batch classes")
output y
output top = max(y, classes)
output least = min(y, batch)
loss = sum(y)
minimize loss using momentum(lr = 1, momentum = 0.5)
)";

void set_whole_numbers(TensorMap& values, uint64_t seed) {
  for (auto& [name, tensor] : values)
    for (size_t i = 0; i < tensor.reals.size(); ++i) tensor.reals[i] = static_cast<double>((i * 7 + seed + name.str().size()) % 5) - 2;
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

namespace {

using PlanFault = std::function<bool(MeshPlan& plan)>;  // false: there is nothing to spoil

MeshCollective* find_collective(MeshPlan& plan, const std::function<bool(const MeshCollective&)>& wanted) {
  for (MeshStage& stage : plan.stages)
    for (MeshCollective& c : stage.collectives)
      if (wanted(c)) return &c;
  return nullptr;
}

bool of_axes(const MeshPlan& plan, const MeshCollective& c) { return plan.values[c.from].shape.size() > 1; }

bool largest_for_sum(MeshPlan& plan) {
  MeshCollective* c = find_collective(plan, [&](const MeshCollective& x) { return x.kind == CollectiveKind::all_reduce && of_axes(plan, x); });
  if (c) c->reduce = ReduceKind::max;
  return c != nullptr;
}

bool sum_over_the_other_axis(MeshPlan& plan) {
  MeshCollective* c = find_collective(plan, [&](const MeshCollective& x) { return x.kind == CollectiveKind::all_reduce && of_axes(plan, x); });
  if (c) c->mesh_axis = 1 - c->mesh_axis;
  return c != nullptr;
}

bool forgotten_sum(MeshPlan& plan) {
  for (MeshStage& stage : plan.stages)
    for (size_t i = 0; i < stage.collectives.size(); ++i)
      if (stage.collectives[i].kind == CollectiveKind::all_reduce && of_axes(plan, stage.collectives[i]))
        return stage.collectives.erase(stage.collectives.begin() + static_cast<std::ptrdiff_t>(i)), true;
  return false;
}

bool sum_of_a_stale_value(MeshPlan& plan) {
  MeshCollective* first = nullptr;
  for (MeshStage& stage : plan.stages)
    for (MeshCollective& c : stage.collectives) {
      if (c.kind != CollectiveKind::all_reduce || !of_axes(plan, c)) continue;
      if (first && plan.values[first->from].shape == plan.values[c.from].shape) return c.from = first->from, true;
      if (!first) first = &c;
    }
  return false;
}

bool swapped_coordinates(MeshPlan& plan) {
  if (plan.coordinates.size() < 2) return false;
  std::swap(plan.coordinates[0].buffer, plan.coordinates[1].buffer);
  return true;
}

bool another_part_of_a_source(MeshPlan& plan) {
  for (MeshSource& source : plan.sources)
    for (std::vector<int>& over : source.layout.over)
      if (over.size() == 1) return over[0] = 1 - over[0], true;
  return false;
}

bool update_of_another_value(MeshPlan& plan) {
  for (MeshUpdate& a : plan.updates)
    for (MeshUpdate& b : plan.updates)
      if (a.value != b.value && plan.values[a.value].shape == plan.values[b.value].shape) return std::swap(a.value, b.value), true;
  return false;
}

bool parts_of_an_output_exchanged(MeshPlan& plan) {
  for (MeshResult& output : plan.outputs)
    for (std::vector<int>& over : output.layout.over)
      if (!over.empty()) return over[0] = 1 - over[0], true;
  return false;
}

}  // namespace

TEST_CASE("mesh: faults of a plan are found") {
  const MeshExample example{"gpt2.ein", kTinyGpt, "data=2,model=2", "batch=data; heads,hidden,vocab=model; states=data"};
  const Graph graph = graph_of(example);
  const Bindings dims = dims_of(example.dims);
  const auto program = compile_for_mesh(graph, dims, RunMode::training);
  const ProgramData data = data_for(graph, dims);
  const InterpretResult wanted = interpreted(graph, data);
  REQUIRE(run_difference(*program, data, wanted, 2e-4) == "");
  const std::pair<const char*, PlanFault> faults[] = {{"the largest for the sum", largest_for_sum},
                                                      {"a sum over the other mesh axis", sum_over_the_other_axis},
                                                      {"a sum forgotten", forgotten_sum},
                                                      {"a sum of a stale value", sum_of_a_stale_value},
                                                      {"coordinates exchanged", swapped_coordinates},
                                                      {"another device's part of a source", another_part_of_a_source},
                                                      {"an update that takes another's value", update_of_another_value},
                                                      {"an output put together wrongly", parts_of_an_output_exchanged}};
  for (const auto& [name, fault] : faults) {
    PerPart<MeshPlan> parts = program->parts();
    INFO(name);
    REQUIRE(fault(*parts[Part::training]));
    const MeshProgram spoilt(program->info, program->mesh(), std::move(parts), nullptr);
    CHECK(run_difference(spoilt, data, wanted, 2e-4) != "");
  }
}

TEST_CASE("mesh: sums are a balanced tree over the coordinates") {
  // Terms whose sum depends on the order in each place.
  const auto term = [](int64_t device, int64_t i) { return std::sin(static_cast<float>(device * 37 + i)) * std::exp2f(static_cast<float>((device * 5 + i) % 13)); };
  const std::function<float(int64_t, int64_t, int64_t)> tree = [&](int64_t begin, int64_t end, int64_t i) {
    if (end - begin == 1) return term(begin, i);
    const auto half = static_cast<int64_t>(std::bit_floor(static_cast<uint64_t>(end - begin - 1)));
    return tree(begin, begin + half, i) + tree(begin + half, end, i);
  };
  ThreadPool pool(3);
  for (const int64_t devices : {1, 2, 3, 4, 5, 6, 7, 8, 13})
    for (const int64_t count : {int64_t{1}, int64_t{513}, int64_t{9000}}) {
      std::vector<std::vector<float>> terms;
      std::vector<const std::byte*> at;
      for (int64_t d = 0; d < devices; ++d) {
        terms.emplace_back();
        for (int64_t i = 0; i < count; ++i) terms.back().push_back(term(d, i));
      }
      for (const std::vector<float>& t : terms) at.push_back(reinterpret_cast<const std::byte*>(t.data()));
      std::vector<float> sum(static_cast<size_t>(count));
      tree_reduce(pool, ReduceKind::sum, DType::f32, at, count, reinterpret_cast<std::byte*>(sum.data()));
      bool same = true;
      for (int64_t i = 0; i < count; ++i) same = same && sum[static_cast<size_t>(i)] == tree(0, devices, i);
      CAPTURE(devices);
      CHECK(same);
    }
}

TEST_CASE("mesh: devices in several processes make the same bits, and the same is sent") {
  for (const MeshExample& example : kMeshExamples) {
    const Graph graph = graph_of(example);
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

TEST_CASE("mesh: values that are not needed at once lie in one place") {
  const MeshExample example{"gpt2.ein", "batch=4 seq=6 vocab=16 layers=6 heads=4 head=4", "data=2", "batch=data; params=data"};
  const Graph graph = graph_of(example);
  const auto program = compile_for_mesh(graph, dims_of(example.dims), RunMode::training);
  const MeshPlan& plan = *program->parts()[Part::training];
  int64_t apart = 0;
  for (const DeviceTensor& value : plan.values) apart += value.bytes;
  CHECK(plan.bytes < apart * 4 / 5);
}

TEST_CASE("mesh: random programs on random meshes") { check_random_programs(1, 150, wrong_mesh_run); }
