// SPDX-License-Identifier: Apache-2.0
// fp8 on meshes, as it is scheduled for GPUs: params that lie in parts are narrowed there and put together in fp8, layer by layer beside
// launches; the largest elements of all operands meet at once.
#include <doctest/doctest.h>

#include <algorithm>
#include <cmath>
#include <string>

#include "compiler/api/verify_mesh.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/fuse/planned_step.h"
#include "compiler/partition/device_program.h"
#include "compiler/partition/narrowing.h"
#include "compiler/report/planned_device.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/mesh_examples.h"
#include "tests/support/partition_check.h"
#include "tests/support/run_cuda.h"
#include "tests/support/sample.h"

using namespace einc;

namespace {

constexpr int kLayers = 3;
constexpr const char* kLlama = "batch=16 seq=64 vocab=256 layers=3 embed=128 heads=4 kv_heads=4 ffn=256";

struct Fp8Device {
  Bindings dims = dims_of(kLlama);
  Compilation compilation;
  Localized local;
  DeviceProgram program;
  PlannedStep step;
  DevicePlan plan;

  explicit Fp8Device(const char* shard)
      : compilation(compiled({"llama.ein", kLlama, "data=4", shard, 0, Policy::fp8}, Roots::step)),
        local(localize(std::get<Partitioned>(partition_for_mesh(*compilation.graph, dims)))) {
    local.stores = DeviceUpdates::in_place;
    program = device_program(local);
    const PlanStep plan_step = plan_for_device({}, *find_device("h100-sxm"));
    step = plan_step(program.graph, dims, mode_of(local.stores), [](const FormedView&, const BesidePlan&) { return int64_t{0}; });
    plan = plan_device(local, program, local.graph.dims.bind(dims).values, step.formed->view(), step.besides.places);
  }

  std::string name(NodeId id) const { return local.graph[id].origin.module.str() + "." + local.graph[id].origin.label.str(); }
  // Gathers of a layer's weights in a phase.
  bool is_weight(NodeId id, Phase phase) const {
    const Node& node = local.graph[id];
    return node.op == Op::all_gather && node.origin.phase == phase && node.origin.label.str().starts_with("w_");
  }
  int64_t count(auto is_one) const { return std::ranges::count_if(plan.schedule.collectives, is_one); }
};

}  // namespace

TEST_CASE("mesh in fp8: weights are put together in fp8, in each phase or once a step") {
  for (const auto& [shard, again] : {std::pair("batch=data; params=data", true), std::pair("batch=data; states=data", false)}) {
    CAPTURE(shard);
    const Fp8Device device(shard);
    const auto of = [&](Phase phase) {
      return device.count([&](NodeId id) { return device.is_weight(id, phase) && device.local.graph.type(id).dtype == DType::f8e4m3; });
    };
    CHECK(of(Phase::forward) == 7 * kLayers + 1);
    CHECK(of(Phase::backward) == (again ? 7 * kLayers + 1 : 0));
    for (const NodeId id : device.plan.schedule.collectives)
      for (const Phase phase : {Phase::forward, Phase::backward})
        if (device.is_weight(id, phase)) CHECK(device.local.graph.type(id).dtype == DType::f8e4m3);
  }
}

// What is put together lies in one order, of which a copy is made where a product wants the other.
TEST_CASE("mesh in fp8: products of weights are a library's") {
  const Fp8Device device("batch=data; params=data");
  const KernelList& list = device.step.formed->list;
  int products = 0, library = 0;
  for (uint32_t k = 0; k < list.kernels.size(); ++k)
    for (const NodeId id : list.kernels[k].group.members) {
      const Graph& graph = device.step.formed->bound.graph;
      if (graph[id].op != Op::contract || bytes_of(graph.type(graph[id].operands[0]).dtype) != 1) continue;
      ++products;
      library += list.library.product(k) != nullptr;
    }
  CHECK(products == 3 * (7 * kLayers + 1));
  CHECK(library == products);
}

TEST_CASE("mesh in fp8: the largest elements of all operands meet in one collective for up to 64") {
  const Fp8Device device("batch=data; params=data");
  const auto is_extreme = [&](NodeId id) {
    const Node& node = device.local.graph[id];
    return node.op == Op::all_reduce && node.as<CollectiveAttr>().fn == ReduceFn::max;
  };
  int64_t numbers = 0;
  for (const NodeId id : device.plan.schedule.collectives)
    if (is_extreme(id)) numbers += device.local.graph.type(id).axis(0).size.evaluate_integer({}).value();
  // Of a layer 7 weights, 4 activations and 7 gradients; the head, its operand and gradient.
  CHECK(numbers == 18 * kLayers + 3);
  CHECK(device.count(is_extreme) == (numbers + 63) / 64);
}

TEST_CASE("mesh in fp8: weights of the next layer are on their way while this one works") {
  const Fp8Device device("batch=data; params=data");
  const std::vector<DeviceStep>& steps = device.plan.schedule.steps;
  const auto weight = [&](const DeviceStep& step) {
    if (!is_collectives(step)) return std::string();
    const NodeId id = device.plan.schedule.collectives[step.index];
    return device.is_weight(id, Phase::forward) ? device.name(id) : std::string();
  };
  const auto multiplies = [&](const DeviceStep& step) {
    bool found = false;
    for (uint32_t l = step.first; step.act == DeviceAct::compute && l < step.last; ++l)
      found = found || device.step.formed->list.kernels[l].kernel->contraction;
    return found;
  };
  int gathers = 0, beside = 0;
  for (size_t t = 0; t < steps.size(); ++t) {
    if (steps[t].act != DeviceAct::start || weight(steps[t]).empty() || weight(steps[t]).starts_with("layer.0")) continue;
    ++gathers;
    const auto from = steps.begin() + static_cast<std::ptrdiff_t>(t);
    const auto wait =
        std::find_if(from, steps.end(), [&](const DeviceStep& s) { return s.act == DeviceAct::wait && s.index == steps[t].index; });
    beside += std::any_of(from, wait, multiplies);
  }
  CHECK(gathers == 7 * (kLayers - 1) + 1);
  CHECK(beside == gathers);
  // Each is waited for alone: copies of several in another order are no one launch.
  std::string last;
  for (const DeviceStep& step : steps) {
    if (step.act == DeviceAct::compute) last.clear();
    if (step.act != DeviceAct::wait || weight(step).empty()) continue;
    CHECK_MESSAGE(last.empty(), last, " and ", weight(step));
    last = weight(step);
  }
}

namespace {

constexpr MeshExample kFp8Examples[] = {{"llama.ein", "batch=4 seq=8 vocab=32 layers=1 embed=32 heads=2 kv_heads=2 ffn=32", "data=4",
                                         "batch=data; params=data", 0.02, Policy::fp8},
                                        {"gpt2.ein", "batch=4 seq=8 vocab=32 layers=1 heads=2 head=16", "data=2,model=2",
                                         "batch=data; heads,hidden,vocab=model; states=data", 0.06, Policy::fp8}};

// By the length of tensors: sums in another order are rounded to another number of fp8 here and there. Params are left out, of which Adam
// makes steps of the sign of the smallest gradients.
void check_near(const CpuRun& found, const CpuRun& wanted, double tolerance) {
  CHECK(distance(*found.loss, *wanted.loss) < 1e-3);
  for (const auto& [name, gradient] : wanted.gradients) {
    CAPTURE(name.str());
    CHECK(distance(found.gradients.at(name), gradient) < tolerance);
  }
  for (const auto& [name, state] : wanted.states) {
    CAPTURE(name.str());
    if (name.str().ends_with(".amax")) CHECK(distance(found.states.at(name), state) < tolerance);
  }
}

}  // namespace

TEST_CASE("mesh in fp8: runs give what the program gives whole, and send what the report says") {
  for (const MeshExample& example : sampled(kFp8Examples, 2)) {
    INFO(example.file);
    const Graph graph = *compiled(example).graph;
    const Bindings dims = dims_of(example.dims);
    ProgramData data = data_for(graph, dims);
    // Of a first step the scales say nothing of its values.
    for (const auto& [name, state] : interpreted(graph, data).states)
      if (name.str().ends_with(".amax")) data.states[name] = state;
    CHECK(device_graph_problem(graph, dims) == "");
    // Beside one device of the same kind.
    const auto check = [&](const auto& program, const CpuRun& wanted) {
      CHECK(verify_mesh_plan(*program.parts()[Part::training]) == "");
      const MeshRun run = run_on_mesh(program, data.inputs, data.params, data.states, data.options, 1);
      REQUIRE(run.fault == NonFinite::nothing);
      check_near(run.values, wanted, example.tolerance);
      CHECK(counted_bytes(run.sent) == foretold_bytes(graph, dims));
    };
    check(*compile_for_mesh(graph, dims, RunMode::training), run_cpu(graph, dims, data.inputs, data.params, data.states, data.options));
    check(*compile_with_library(graph, dims, RunMode::training),
          run_cuda(graph, dims, data.inputs, data.params, data.states, data.options, Scheduling::all, {1, 1, 1}));
  }
}

// A microbatch's gradients are so many times the whole's, of whose loss it is a part: scales have room for them.
TEST_CASE("mesh in fp8: a pipeline gives what the program gives whole") {
  for (const char* shard :
       {"layers=stage(microbatches=2); batch=data; params=data", "layers=stage(microbatches=2); batch=data; states=data"}) {
    CAPTURE(shard);
    const MeshExample example{"llama.ein", "batch=4 seq=8 vocab=32 layers=2 embed=32 heads=2 kv_heads=2 ffn=32", "stage=2,data=2", shard, 0,
                              Policy::fp8};
    const Graph graph = *compiled(example, Roots::step).graph;
    const Bindings dims = dims_of(example.dims);
    ProgramData data = data_for(graph, dims);
    for (const auto& [name, state] : interpreted(graph, data).states)
      if (name.str().ends_with(".amax")) data.states[name] = Tensor::of_reals({}, {4 * state.reals[0]}, state.dtype);
    const auto program = compile_for_mesh(graph, dims, RunMode::training);
    const MeshRun run = run_on_mesh(*program, data.inputs, data.params, data.states, data.options, 1);
    REQUIRE(run.fault == NonFinite::nothing);
    CpuRun wanted = run_cpu(graph, dims, data.inputs, data.params, data.states, data.options);
    for (const auto& [name, state] : wanted.states) {
      if (!name.str().ends_with(".amax")) continue;
      CAPTURE(name.str());
      const double ratio = run.values.states.at(name).reals[0] / state.reals[0];
      CHECK(std::min(std::abs(ratio - 1), std::abs(ratio / 2 - 1)) < 0.01);
    }
    wanted.states.clear();
    check_near(run.values, wanted, 0.1);
    const auto count = [&](CollectiveKind kind, int64_t bytes) {
      return std::ranges::count_if(run.sent, [&](const SentBytes& sent) { return sent.kind == kind && sent.bytes == bytes; });
    };
    // The norm of all gradients goes up and comes back, on two devices; largest elements stay where they are made and read.
    CHECK(count(CollectiveKind::shift, 4) == 2 * 2);
    for (const int64_t numbers : {18, 18 + 3}) CHECK(count(CollectiveKind::all_reduce, 8 * numbers) == 1);  // of a layer; and of the head
  }
}

TEST_CASE("narrowing: what becomes fewer bits of a param, and what needs the whole") {
  PipelineOptions options;
  options.roots = Roots::inference;
  const Compilation compilation = compile_text("narrow.ein", R"(
dim n = 4, m = 4
input x: bf16[n m]
param cast_alone: f32[n m] ~ ones
param scaled: f32[n m] ~ ones
param both: f32[n m] ~ ones
param wide: f32[n m] ~ ones
param rows: f32[n m] ~ ones
scale = max(abs(scaled))
output a = x * cast(cast_alone, bf16)
output b = x * cast(max(scaled / scale, -2.0), bf16)
output c = x * cast(both, bf16) + cast(sum(both), bf16)
output d = cast(x, f32) * wide
output e = x * cast(rows / max(rows, m), bf16)
)",
                                               options);
  REQUIRE(compilation.graph);
  const Graph& graph = *compilation.graph;
  const Narrowing narrowing = find_narrowing(graph);
  const auto param = [&](std::string_view path) {
    for (uint32_t i = 0; i < graph.size(); ++i)
      if (graph.nodes[i].op == Op::param && graph.nodes[i].as<ParamAttr>().path.str() == path) return i;
    return UINT32_MAX;
  };
  const auto narrow = [&](std::string_view path) {
    return std::ranges::count_if(narrowing.made_of, [&](const auto& made) { return made.second == param(path); });
  };
  for (const auto& [path, only, made] : {std::tuple("cast_alone", true, 1), std::tuple("scaled", true, 1), std::tuple("both", false, 1),
                                         std::tuple("wide", false, 0), std::tuple("rows", false, 0)}) {
    CAPTURE(path);
    REQUIRE(param(path) != UINT32_MAX);
    CHECK(narrowing.only[param(path)] == only);
    CHECK(narrow(path) == made);
  }
}

TEST_CASE("narrowing: each node is looked at once, however often it reads a value") {
  std::string text = "param w: f32[n=4] ~ ones\n";
  for (int i = 0; i < 64; ++i) text += "w = w * w\n";
  text += "output y = cast(w, bf16)\n";
  PipelineOptions options;
  options.roots = Roots::inference;
  const Compilation compilation = compile_text("squares.ein", text, options);
  REQUIRE(compilation.graph);
  CHECK(find_narrowing(*compilation.graph).made_of.size() == 1);
}
