// SPDX-License-Identifier: Apache-2.0
// A mesh whose devices share the emulated GPU: the values of the whole program, sums of the processor's bits, what is sent to the byte. A
// captured step runs in orders that only its events hold back; faults in them are planted and found.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <array>
#include <cmath>
#include <cstring>
#include <functional>
#include <map>
#include <span>
#include <utility>

#include "compiler/api/mesh_cuda.h"
#include "compiler/api/mesh_process.h"
#include "compiler/api/verify_mesh.h"
#include "compiler/codegen/cuda/mesh_text.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/report/stage_steps.h"
#include "emulator.h"
#include "runtime/base/failure.h"
#include "runtime/cuda/mesh_devices.h"
#include "runtime/mesh/pipeline_plan.h"
#include "runtime/mesh/tree_sum.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/agree/mesh/staged_examples.h"
#include "tests/fuzz/random_program.h"
#include "tests/support/context_programs.h"
#include "tests/support/random_check.h"
#include "tests/support/run_cuda.h"
#include "tests/support/sample.h"
#include "tests/support/test_gpu.h"

using namespace einc;

namespace {

// Params, states and the loss behind a training step.
using Stepped = std::vector<std::vector<std::byte>>;

// Of one runner: the same step again and again from the same values, which is captured the second time.
class RepeatedStep {
 public:
  RepeatedStep(const MeshProgram& program, const ProgramData& data)
      : program_(program),
        data_(data),
        bound_(start_on_mesh(program, data, 1)),
        first_(bound_.memory[1]),
        first_states_(bound_.memory[2]) {}
  Stepped run() {
    set(SourceKind::param, first_);
    set(SourceKind::state, first_states_);
    Stepped result;
    if (bound_.runner->run_while_finite(Part::training, data_.options.seed, data_.options.step) != NonFinite::nothing) return result;
    const TensorView loss = bound_.runner->loss(Part::training);
    const auto* bytes = static_cast<const std::byte*>(loss.data());
    result.emplace_back(bytes, bytes + loss.bytes());
    for (const SourceKind kind : {SourceKind::param, SourceKind::state})
      for (uint32_t i = 0; i < sources_of(program_.info, kind).size(); ++i) {
        bound_.runner->fetch({kind, i});
        result.push_back(bound_.memory[static_cast<size_t>(kind)][i].bytes);
      }
    return result;
  }

 private:
  void set(SourceKind kind, const std::vector<HostArray>& values) {
    std::vector<HostArray>& memory = bound_.memory[static_cast<size_t>(kind)];
    for (uint32_t i = 0; i < values.size(); ++i) {
      std::ranges::copy(values[i].bytes, memory[i].bytes.begin());
      bound_.runner->written({kind, i});
    }
  }

  const MeshProgram& program_;
  const ProgramData& data_;
  BoundRun bound_;
  const std::vector<HostArray> first_, first_states_;
};

// The captured step in one order, or a failure to capture it; empty where it agrees with the one that was not captured.
std::string captured_difference(const MeshProgram& program, const ProgramData& data) {
  try {
    RepeatedStep steps(program, data);
    const Stepped wanted = steps.run();
    if (wanted.empty()) return "not finite";
    std::string found;
    for (const unsigned order : {0u, 1u, 7u, 8u}) {
      emulator::set_order(order);
      if (steps.run() != wanted) found = fmt::format("another result in order {}", order);
    }
    emulator::set_order(0);
    return found;
  } catch (const RuntimeFailure& failure) {
    emulator::set_order(0);
    emulator::recover();
    return failure.what();
  }
}

std::string wrong_gpu_run(const std::string& text, uint64_t seed) { return wrong_run(text, seed, compile_for_gpus); }

}  // namespace

TEST_CASE("mesh on a GPU: examples give what they give whole, send what the report says, and are captured to the same bits") {
  for (const MeshExample& example : sampled(mesh_examples(), 3)) {
    INFO(fmt::format("{} on {}, {}", example.file, example.mesh, example.shard));
    const Graph graph = *compiled(example).graph;
    const Bindings dims = dims_of(example.dims);
    const auto program = compile_for_gpus(graph, dims, RunMode::training);
    CHECK(verify_mesh_plan(*program->parts()[Part::training]) == "");
    const ProgramData data = data_for(graph, dims);
    const MeshRun run = run_on_mesh(*program, data.inputs, data.params, data.states, data.options, 1);
    REQUIRE(run.fault == NonFinite::nothing);
    InterpretResult wanted = interpreted(graph, data);
    InterpretResult found = as_result(run.values, wanted);
    // Adam makes steps of the rounding of gradients that are 0, such as those of keys' biases: params by the length of the tensor.
    for (const auto& [name, param] : std::exchange(wanted.params, {}))
      CHECK_MESSAGE(distance(found.params.at(name), param) <= example.tolerance, name.str());
    found.params.clear();
    CHECK(result_difference(found, wanted, example.tolerance) == "");
    CHECK(counted_bytes(run.sent) == foretold_bytes(graph, dims));
    CHECK(captured_difference(*program, data) == "");
  }
}

namespace {

// With tiles of tensor cores (bf16, heads of 16) and without.
void check_attention(std::span<const size_t> programs, bool keys) {
  for (const Policy precision : {Policy::inherit, Policy::bf16})
    for (const size_t p : programs) {
      CAPTURE(context_programs()[p].name);
      CAPTURE(static_cast<int>(precision));
      std::string text = with_length(text_of(context_programs()[p], "context = 2", shard_lines("", keys)), 192);
      text.replace(text.find("head = 4"), 8, "head = 16");
      PipelineOptions options;
      options.precision = precision;
      const Compilation c = compile_text("context.ein", text, options);
      REQUIRE(c.graph.has_value());
      const auto program = compile_for_gpus(*c.graph, {}, RunMode::training);
      const ProgramData data = data_for(*c.graph, {});
      CHECK(run_difference(*program, data, interpreted(*c.graph, data), precision == Policy::bf16 ? 0.05 : 2e-4) == "");
    }
}

}  // namespace

TEST_CASE("mesh on a GPU: causal attention skips keys by the device's coordinate") {
  check_attention(std::array<size_t, 3>{1, 4, 5}, false);
}
TEST_CASE("mesh on a GPU: each step of a ring as kernels of attention") { check_attention(std::array<size_t, 4>{0, 1, 4, 5}, true); }

TEST_CASE("mesh on a GPU: whole numbers have equal bits on meshes up to 8 devices") {
  std::string problem;
  for (uint64_t seed = 0; seed < 8; ++seed) {
    std::optional<Wanted> given = interpret_text(kWholeNumbers, seed, problem);
    REQUIRE_MESSAGE(given.has_value(), problem);
    for (TensorMap* values : {&given->inputs, &given->params, &given->states}) set_whole_numbers(*values, seed);
    given->graph.mesh = random_mesh(given->graph, given->graph.dims.bind({}).values, seed);
    const auto program = compile_for_gpus(given->graph, {}, RunMode::training);
    const ProgramData data{{}, given->inputs, given->params, given->states, {}};
    CAPTURE(seed);
    CHECK(run_difference(*program, data, interpreted(given->graph, data), 0) == "");
  }
}

TEST_CASE("mesh on a GPU: random programs on random meshes") { check_random_programs(1, 12, wrong_gpu_run); }

TEST_CASE("mesh on a GPU: random programs on random meshes whose products are a library's") {
  check_random_programs(101, 12, [](const std::string& text, uint64_t seed) { return wrong_run(text, seed, compile_with_library); });
}

namespace {

std::map<std::pair<CollectiveKind, int>, int64_t> bytes_by_kind(const std::vector<SentBytes>& sent) {
  std::map<std::pair<CollectiveKind, int>, int64_t> bytes;
  for (const SentBytes& s : sent)
    if (s.bytes > 0) bytes[{s.kind, s.mesh_axis}] += s.bytes;
  return bytes;
}

}  // namespace

TEST_CASE("mesh on a GPU: stages give what the program gives whole, send what the report says, and are captured to the same bits") {
  for (const MeshExample& example : sampled(kStaged, 8)) {
    INFO(text_of(example));
    const Graph graph = *compiled(example, Roots::step).graph;
    const Bindings dims = dims_of(example.dims);
    const auto program = compile_for_gpus(graph, dims, RunMode::training);
    const ProgramData data = data_for(graph, dims);
    const MeshRun run = run_on_mesh(*program, data.inputs, data.params, data.states, data.options, 1);
    REQUIRE(run.fault == NonFinite::nothing);
    const bool draws = std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op == Op::random; });
    InterpretResult wanted = interpreted(graph, data);
    InterpretResult found = as_result(run.values, wanted);
    for (const auto& [name, param] : std::exchange(wanted.params, {}))
      if (!draws) CHECK_MESSAGE(distance(found.params.at(name), param) <= example.tolerance, name.str());
    found.params.clear();
    if (!draws) CHECK(result_difference(found, wanted, example.tolerance) == "");
    const auto made = partition(graph, dims);
    const auto staged = staged_device(std::get<Partitioned>(made), dims);
    int64_t foretold = 0, sent = 0;
    for (const StageSend& send : staged->cut.sends)
      foretold += program->mesh().devices() / staged->stages() * staged->times_moved(send) *
                  static_cast<int64_t>(staged->bytes_of(send.value).to_double());
    for (const SentBytes& s : run.sent)
      if (s.kind == CollectiveKind::shift && s.mesh_axis == 0) sent += s.bytes;
    CHECK(sent == foretold);
    if (program->mesh().sizes.size() > 1) {
      const auto host = compile_for_mesh(graph, dims, RunMode::training);
      const MeshRun there = run_on_mesh(*host, data.inputs, data.params, data.states, data.options, 1);
      CHECK(bytes_by_kind(run.sent) == bytes_by_kind(there.sent));
    }
    CHECK(captured_difference(*program, data) == "");
  }
}

TEST_CASE("mesh on a GPU: the report tells what a process of one device takes of each stage") {
  for (const MeshExample& example : sampled(kStaged, 4)) {
    INFO(text_of(example));
    const Graph graph = *compiled(example, Roots::step).graph;
    const Bindings dims = dims_of(example.dims);
    const auto program = compile_for_gpus(graph, dims, RunMode::training);
    const auto made = partition_for_mesh(graph, dims);
    const auto& partitioned = std::get<Partitioned>(made);
    const auto staged = staged_device(partitioned, dims);
    REQUIRE(staged);
    MeshReport report = mesh_report(graph, partitioned, staged->whole, dims, nullptr, &*staged);
    CudaOptions options;
    options.gpu = cuda::Gpu::get().shape();
    options.attention = cuda::AttentionLibrary::get();
    tell_stages(report, *staged, plan_for_gpu(options), process_bytes_of(graph, dims, DeviceTarget::cuda), nullptr);
    const int64_t devices = program->mesh().devices(), of_stage = devices / staged->stages();
    for (int64_t device = 0; device < devices; device += of_stage) {
      INFO(fmt::format("device {}", device));
      CHECK(*report.pipeline->stages[static_cast<size_t>(device / of_stage)].peak.value ==
            Rational(gpu_bytes_of(program->mesh(), program->parts(), program->code(), device, 1)));
    }
  }
}

TEST_CASE("mesh on a GPU: faults of stages are found") {
  const MeshExample& example = kStaged[0];
  const Graph graph = *compiled(example, Roots::step).graph;
  const Bindings dims = dims_of(example.dims);
  const auto program = compile_for_gpus(graph, dims, RunMode::training);
  const ProgramData data = data_for(graph, dims);
  const Stepped wanted = RepeatedStep(*program, data).run();
  for (const auto& [name, fault] : pipeline_faults()) {
    INFO(std::string(name));
    PerPart<MeshPlan> plans = program->parts();
    const auto spoilt = std::make_shared<PipelinePlan>(*plans[Part::training]->pipeline);
    fault(*spoilt);
    plans[Part::training]->pipeline = spoilt;
    FileCache cache(test_cubin_folder());
    const CudaMeshProgram wrong(program->info, program->mesh(), std::move(plans), program->code(), nullptr, {}, cache, 1);
    CHECK((captured_difference(wrong, data) != "" || RepeatedStep(wrong, data).run() != wanted));
  }
}

// The memory of marks has as many numbers as a step marks.
TEST_CASE("mesh on a GPU: marks of a step in two parts count on from the first, however often the second is put together") {
  use_test_gpu();
  const cuda::GpuScope scope(cuda::Gpu::get());
  const cuda::OwnedStream stream = cuda::make_stream();
  DoneMarks marks(2);
  marks.begin(stream.get());
  marks.mark(stream.get(), "before");
  const size_t marked = marks.marked();
  for (int time = 0; time < 3; ++time) {
    marks.go_on(marked);
    marks.mark(stream.get(), "behind");
    EINC_CUDA(cuStreamSynchronize, stream.get());
    CHECK(marks.marked() == 2);
    CHECK(marks.next() == "");
  }
}

TEST_CASE("mesh on a GPU: sums have the bits of the processor's tree") {
  use_test_gpu();
  const cuda::GpuScope scope(cuda::Gpu::get());
  ThreadPool pool(1);
  const std::pair<ReduceKind, DType> rows[] = {
      {ReduceKind::sum, DType::f32},    {ReduceKind::sum, DType::f64},    {ReduceKind::sum, DType::bf16}, {ReduceKind::sum, DType::f16},
      {ReduceKind::sum, DType::f8e4m3}, {ReduceKind::sum, DType::i32},    {ReduceKind::max, DType::f32},  {ReduceKind::min, DType::bf16},
      {ReduceKind::prod, DType::f32},   {ReduceKind::any, DType::boolean}};
  for (const auto& [reduce, dtype] : rows)
    for (const int64_t terms : {1, 2, 3, 7, 8}) {
      INFO(fmt::format("{} of {} {}", static_cast<int>(reduce), terms, to_string(dtype)));
      const int64_t count = 37, element = bytes_of(dtype);
      MeshPlan plan;
      plan.values.push_back({dtype, {count}, count * element, 0});
      plan.values.push_back({dtype, {count}, count * element, 1024});
      plan.bytes = 2048;
      plan.collectives.push_back({CollectiveKind::all_reduce, 0, reduce, 0, 0, 0, 1});
      const MeshShape mesh{{"data"}, {terms}};
      const CudaExecutable helpers = mesh_functions(plan, mesh);
      const CudaKernels kernels(helpers, test_cubins(), 1);
      const cuda::DeviceMemory memory = cuda::allocate(plan.bytes * terms, "values");
      const cuda::OwnedStream stream = cuda::make_stream();
      Tensor values = Tensor::zeros(DType::f64, {count * terms});
      for (int64_t i = 0; i < values.count(); ++i) values.reals[static_cast<size_t>(i)] = std::sin(static_cast<double>(i * i + 1)) * 3;
      if (dtype == DType::i32 || dtype == DType::boolean)
        for (double& value : values.reals) value = dtype == DType::boolean ? value > 2.9 : std::round(value * 1000);
      const HostArray all = to_host(convert(values, dtype));
      std::vector<const std::byte*> each;
      for (int64_t t = 0; t < terms; ++t) {
        each.push_back(all.bytes.data() + t * count * element);
        EINC_CUDA(cuMemcpyHtoDAsync_v2, memory.get() + static_cast<uint64_t>(t * plan.bytes), each.back(),
                  static_cast<size_t>(count * element), stream.get());
      }
      std::vector<std::byte> wanted(static_cast<size_t>(count * element)), found(wanted.size());
      tree_reduce(pool, reduce, dtype, each, count, wanted.data());
      const auto at = [&](int64_t d, uint32_t value) {
        return memory.get() + static_cast<uint64_t>(d * plan.bytes + plan.values[value].offset);
      };
      const MeshMoves moves(plan, mesh, helpers, kernels, {0, terms, at});
      moves.enqueue(0, stream.get());
      for (int64_t t = 0; t < terms; ++t) {
        EINC_CUDA(cuMemcpyDtoHAsync_v2, found.data(), memory.get() + static_cast<uint64_t>(t * plan.bytes + 1024), found.size(),
                  stream.get());
        EINC_CUDA(cuStreamSynchronize, stream.get());
        CHECK(found == wanted);
      }
    }
}

TEST_CASE("mesh on a GPU: what is not finite on one device is stored on none") {
  const Compilation c = compile_text("m.ein",
                                     "mesh data = 3\nshard n over data\ninput x: f32[n=9]\nparam w: [n] ~ ones\nloss = sum(w * x)\n"
                                     "minimize loss using momentum(lr = 0.1)\n",
                                     {});
  REQUIRE(c.graph.has_value());
  const auto program = compile_for_gpus(*c.graph, {}, RunMode::training);
  const ProgramData good = data_for(*c.graph, {});
  ProgramData loss = good, moment = good;
  loss.params.begin()->second.reals.back() = HUGE_VAL;
  moment.states.begin()->second.reals.back() = std::nan("");
  const std::pair<const ProgramData*, NonFinite> rows[] = {
      {&good, NonFinite::nothing}, {&loss, NonFinite::loss}, {&moment, NonFinite::state}};
  for (const auto& [data, wanted] : rows)
    CHECK(run_on_mesh(*program, data->inputs, data->params, data->states, data->options, 1).fault == wanted);
}

namespace {

using GpuFault = std::function<bool(MeshPlan& plan)>;  // false: there is nothing to spoil

// The steps that an event stands for are moved as far as they may be: nothing holds back what read them, or what they read.
bool start_before_it_is_made(MeshPlan& plan) {
  for (size_t s = 1; s < plan.steps.size(); ++s)
    if (plan.steps[s].act == DeviceAct::start && plan.steps[s - 1].act == DeviceAct::compute)
      return std::swap(plan.steps[s], plan.steps[s - 1]), true;
  return false;
}

bool wait_behind_the_readers(MeshPlan& plan) {
  for (size_t s = 0; s + 1 < plan.steps.size(); ++s)
    if (plan.steps[s].act == DeviceAct::wait && plan.steps[s + 1].act == DeviceAct::compute)
      return std::rotate(plan.steps.begin() + static_cast<std::ptrdiff_t>(s), plan.steps.begin() + static_cast<std::ptrdiff_t>(s) + 1,
                         plan.steps.end()),
             true;
  return false;
}

bool no_wait_at_all(MeshPlan& plan) {
  return std::erase_if(plan.steps, [](const DeviceStep& step) { return step.act == DeviceAct::wait; }) > 0;
}

bool swapped_operands(MeshPlan& plan) {
  for (MeshCollective& a : plan.collectives)
    for (MeshCollective& b : plan.collectives)
      if (&a != &b && a.from != b.from && plan.values[a.from].bytes == plan.values[b.from].bytes) return std::swap(a.from, b.from), true;
  return false;
}

bool result_over_another_value(MeshPlan& plan) {
  for (const MeshCollective& c : plan.collectives)
    for (const MeshSource& source : plan.sources)
      if (source.source.kind == SourceKind::param && plan.values[source.value].bytes >= plan.values[c.to].bytes)
        return plan.values[c.to].offset = plan.values[source.value].offset, true;
  return false;
}

}  // namespace

TEST_CASE("mesh on a GPU: faults of a plan that is carried out by streams and events are found") {
  const Compilation c = compile_text("m.ein",
                                     "mesh data = 2, model = 2\nshard b over data\nshard h over model\ninput x: f32[b=4 f=8]\n"
                                     "param w: [f h=8] ~ normal(std = 0.3)\nparam v: [h f] ~ normal(std = 0.3)\n"
                                     "y = einsum(tanh(einsum(x, w, \"b f, f h -> b h\")), v, \"b h, h f -> b f\")\n"
                                     "loss = mean((y - x)^2)\nminimize loss using sgd(lr = 0.1)\n",
                                     {});
  REQUIRE(c.graph.has_value());
  const auto program = compile_for_gpus(*c.graph, {}, RunMode::training);
  const ProgramData data = data_for(*c.graph, {});
  const Stepped wanted = RepeatedStep(*program, data).run();
  REQUIRE(captured_difference(*program, data) == "");
  const std::pair<const char*, GpuFault> faults[] = {{"start", start_before_it_is_made},
                                                     {"late wait", wait_behind_the_readers},
                                                     {"no wait", no_wait_at_all},
                                                     {"operands", swapped_operands},
                                                     {"overlap", result_over_another_value}};
  for (const auto& [name, spoil] : faults) {
    INFO(std::string(name));
    PerPart<MeshPlan> plans = program->parts();
    PerPart<CudaMeshPart> parts = program->code();
    REQUIRE(spoil(*plans[Part::training]));
    FileCache cache(test_cubin_folder());
    const CudaMeshProgram wrong(program->info, program->mesh(), std::move(plans), std::move(parts), nullptr, {}, cache, 1);
    CHECK((captured_difference(wrong, data) != "" || RepeatedStep(wrong, data).run() != wanted));
  }
}
