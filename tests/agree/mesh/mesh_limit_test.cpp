// SPDX-License-Identifier: Apache-2.0
// Steps of a mesh under a limit of memory: they keep within it, give the same bits for any number of processes, send the same, and the
// report tells of the step that runs.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "compiler/api/mesh_cuda.h"
#include "compiler/api/mesh_parts.h"
#include "compiler/api/mesh_process.h"
#include "compiler/api/render_report.h"
#include "compiler/api/verify_mesh.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/pipeline/cuda_program.h"
#include "compiler/report/stage_steps.h"
#include "runtime/base/failure.h"
#include "runtime/mesh/pipeline_plan.h"
#include "runtime/mesh/stage_order.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/least_memory.h"
#include "tests/support/run_cuda.h"
#include "tests/support/sample.h"
#include "tests/support/test_gpu.h"
#include "tests/support/thread_transport.h"

using namespace einc;

namespace {

constexpr const char* kGpt = "batch=8 seq=32 vocab=96 layers=2 heads=2 head=32";
const MeshExample kExamples[] = {{"gpt2.ein", kGpt, "data=2", "batch=data"},
                                 {"gpt2.ein", kGpt, "data=2", "batch=data; params=data"},
                                 {"gpt2.ein", kGpt, "data=2,model=2", "batch=data; heads,hidden,vocab=model; states=data"},
                                 {"gpt2.ein", kGpt, "context=2", "seq=context; keys=context"}};

Scheduling within(std::optional<int64_t> bytes, Scheduling scheduling = {}) {
  if (bytes) scheduling.memory_limit = MemoryLimit{*bytes};
  return scheduling;
}

using CompileWithin = std::function<std::shared_ptr<const MeshProgram>(const ProgramGraphs&, const Scheduling&, const EincTransport*)>;

std::shared_ptr<const MeshProgram> on_processor(const ProgramGraphs& graphs, const Scheduling& scheduling, const EincTransport* transport) {
  return mesh_program(graphs, {}, scheduling, transport);
}
// Which of a product's epilogues run is measured.
std::shared_ptr<const MeshProgram> on_gpu(const ProgramGraphs& graphs, const Scheduling& scheduling, const EincTransport* transport) {
  return cuda_mesh_program(graphs, test_cubin_folder(), scheduling.and_without("epilogues"), transport);
}

ProgramGraphs graphs_of(const MeshExample& example, Roots roots = Roots::training) {
  ProgramGraphs graphs;
  graphs.dims = dims_of(example.dims);
  graphs.parts[Part::training] = *compiled(example, roots).graph;
  return graphs;
}

int64_t least_bytes(const ProgramGraphs& graphs, const CompileWithin& compile, const EincTransport* transport) {
  return least_memory([&] { compile(graphs, within(1), transport); });
}

MeshRun run(const MeshProgram& program, const ProgramData& data) {
  return run_on_mesh(program, data.inputs, data.params, data.states, data.options, 1);
}

void check_bits(const MeshExample& example, const CompileWithin& compile) {
  INFO(fmt::format("{} on {}, {}", example.file, example.mesh, example.shard));
  const ProgramGraphs graphs = graphs_of(example);
  const Graph& graph = *graphs.parts[Part::training];
  const ProgramData data = data_for(graph, graphs.dims);
  const auto program = compile(graphs, {}, nullptr);
  const MeshRun wanted = run(*program, data);
  const int64_t whole = program->planned_bytes(1), least = least_bytes(graphs, compile, nullptr);
  CAPTURE(whole);
  CAPTURE(least);
  REQUIRE(least < whole);
  const auto limited = compile(graphs, within(least), nullptr);
  CHECK(limited->planned_bytes(1) <= least);
  CHECK(verify_mesh_plan(*limited->parts()[Part::training]) == "");
  const MeshRun made = run(*limited, data);
  CHECK(same_bits(made.values, wanted.values));
  CHECK(counted_bytes(made.sent) == foretold_bytes(graph, graphs.dims));
}

// Of a process with one device, what the report says and what is planned to run.
void check_report(const MeshExample& example, const CompileWithin& compile, DeviceTarget target,
                  const std::function<PlanStep(const Scheduling&)>& plan_for) {
  INFO(fmt::format("{} on {}, {}", example.file, example.mesh, example.shard));
  const ProgramGraphs graphs = graphs_of(example);
  const Graph& graph = *graphs.parts[Part::training];
  EincTransport others{};
  others.size = static_cast<int>(mesh_shape(graphs).devices());
  const auto made = partition_for_mesh(graph, graphs.dims);
  const ProcessBytes process = process_bytes_of(graph, graphs.dims, target);
  const auto told = [&](std::optional<int64_t> limit) {
    return mesh_step(localize(std::get<Partitioned>(made)), graphs.dims, plan_for(within(limit)), process, nullptr, {});
  };
  const MeshStep as_is = told({});
  CHECK(as_is.peak() == compile(graphs, {}, &others)->planned_bytes(1));
  CHECK(as_is.recomputed.empty());
  const int64_t least = least_bytes(graphs, compile, &others);
  const int64_t limit = (as_is.peak() + least) / 2;
  const MeshStep step = told(limit);
  CHECK(step.peak() <= limit);
  CHECK(!step.recomputed.empty());
  CHECK(as_is.executed < step.executed);
  CHECK(step.peak() == compile(graphs, within(limit), &others)->planned_bytes(1));
}

const MeshExample kStagedExamples[] = {
    {"gpt2.ein", "batch=8 seq=32 vocab=96 layers=4 heads=2 head=32", "stage=2", "layers=stage(microbatches=4)"},
    {"gpt2.ein", "batch=8 seq=32 vocab=96 layers=5 heads=2 head=32", "stage=3,data=2", "layers=stage(microbatches=4); batch=data"}};

int64_t most_bytes(const MeshProgram& program, int processes) {
  int64_t most = 0;
  for (int64_t rank = 0; rank < processes; ++rank) most = std::max(most, program.bytes_of(1, rank));
  return most;
}

// What the process with the most takes, but for a quarter of what the one with the least keeps for its backwards.
int64_t limit_between(const MeshProgram& as_is, int processes, int64_t most) {
  const PipelinePlan& pipeline = *as_is.parts()[Part::training]->pipeline;
  int64_t kept = INT64_MAX;
  for (int64_t rank = 0; rank < processes; ++rank) {
    const StageBlocks blocks = blocks_of(as_is.mesh(), pipeline, processes, rank);
    int64_t of_process = 0;
    for (int64_t s = blocks.first(); s < blocks.last(); ++s) {
      const PipelineStage& stage = pipeline.stages[static_cast<size_t>(s)];
      of_process += blocks.held_devices(as_is.mesh().devices() / processes) * blocks.held(pipeline.microbatches) *
                    (stage.kept + stage.rounds[kRoundOfMicrobatches].plan.kept);
    }
    kept = std::min(kept, of_process);
  }
  return most - kept / 4;
}

}  // namespace

TEST_CASE("mesh stages: under a limit of memory the same bits, the same is sent, and no process takes more") {
  for (const MeshExample& example : sampled(kStagedExamples, 2)) {
    const ProgramGraphs graphs = graphs_of(example, Roots::step);
    const ProgramData data = data_for(*graphs.parts[Part::training], graphs.dims);
    const auto as_is = on_processor(graphs, {}, nullptr);
    const MeshRun wanted = run(*as_is, data);
    for (const int processes : {1, static_cast<int>(as_is->mesh().sizes[0])}) {
      INFO(fmt::format("{} on {} in {} processes", example.file, example.mesh, processes));
      EincTransport first{};
      first.size = processes;
      const EincTransport* transport = processes == 1 ? nullptr : &first;
      const MeshProgram unlimited(as_is->info, as_is->mesh(), as_is->parts(), transport);
      const int64_t most = most_bytes(unlimited, processes), limit = limit_between(unlimited, processes, most);
      REQUIRE(limit < most);
      const auto limited = on_processor(graphs, within(limit), transport);
      CHECK(most_bytes(*limited, processes) <= limit);
      const auto runs_of_all = [&](const MeshProgram& all) {
        return in_processes(all, processes, [&](const MeshProgram& own) { return run(own, data); });
      };
      const std::vector<MeshRun> as_they_were = runs_of_all(*as_is), made = runs_of_all(*limited);
      for (size_t rank = 0; rank < made.size(); ++rank) {
        CHECK(made[rank].fault == NonFinite::nothing);
        CHECK(same_bits(made[rank].values, wanted.values));
        CHECK(counted_bytes(made[rank].sent) == counted_bytes(as_they_were[rank].sent));
      }
      CHECK_THROWS_AS(on_processor(graphs, within(most / 100), transport), RuntimeFailure);
    }
  }
}

// A stage has it once for each microbatch on its way: of a layer no more than what it reads and what its attention makes, with room for one
// more in all. What comes back to a stage is there in the backward alone, in one place for all.
TEST_CASE("mesh stages: what a backward has of its forward lies together") {
  use_test_gpu();
  const MeshExample example{"gpt2.ein",  "batch=8 seq=64 vocab=16 layers=6 heads=4 head=64", "stage=3", "layers=stage(microbatches=4)", 0,
                            Policy::bf16};
  const ProgramGraphs graphs = graphs_of(example, Roots::step);
  EincTransport others{};
  others.size = 3;
  const auto program = on_gpu(graphs, within(least_bytes(graphs, on_gpu, &others)), &others);
  const PipelinePlan& pipeline = *program->parts()[Part::training]->pipeline;
  constexpr int64_t kActivation = 2 * 64 * 256 * 2;  // bytes of two examples
  CHECK(pipeline.stages[0].kept >= 4 * kActivation);
  CHECK(4 * pipeline.stages[0].kept < (4 * 5 + 1) * kActivation);
  for (const size_t s : {size_t{0}, size_t{1}}) {
    const MeshPlan& each = pipeline.stages[s].rounds[kRoundOfMicrobatches].plan;
    int back = 0;
    for (const MeshCollective& c : each.collectives) {
      if (c.mesh_axis != pipeline.axis || c.kind != CollectiveKind::shift || is_microbatch_sum(c)) continue;
      CHECK(!place_of(each, 0, c.to).of_microbatch);
      ++back;
    }
    CHECK(back == 1);
  }
}

// Of processes with one device each.
TEST_CASE("mesh stages: the report of each stage is of the step that runs, under a limit too") {
  for (const bool gpu : {false, true}) {
    if (gpu) use_test_gpu();
    const MeshExample example = sampled(kStagedExamples, 2).front();
    INFO(fmt::format("{} on {}{}", example.file, example.mesh, gpu ? " on a GPU" : ""));
    const ProgramGraphs graphs = graphs_of(example, Roots::step);
    const Graph& graph = *graphs.parts[Part::training];
    EincTransport others{};
    others.size = static_cast<int>(mesh_shape(graphs).devices());
    const auto as_is = gpu ? on_gpu(graphs, {}, &others) : on_processor(graphs, {}, &others);
    const auto bytes_of = [&](const MeshProgram& program, int64_t rank) {
      const auto* on = dynamic_cast<const CudaMeshProgram*>(&program);
      return on == nullptr ? program.bytes_of(1, rank) : gpu_bytes_of(on->mesh(), on->parts(), on->code(), rank, 1);
    };
    int64_t most = 0;
    for (int64_t rank = 0; rank < others.size; ++rank) most = std::max(most, bytes_of(*as_is, rank));
    const Scheduling scheduling = within(limit_between(*as_is, others.size, most));
    const auto limited = gpu ? on_gpu(graphs, scheduling, &others) : on_processor(graphs, scheduling, &others);
    const auto made = partition_for_mesh(graph, graphs.dims);
    const auto& partitioned = std::get<Partitioned>(made);
    const auto staged = staged_device(partitioned, graphs.dims);
    REQUIRE(staged);
    MeshReport report = mesh_report(graph, partitioned, staged->whole, graphs.dims, nullptr, &*staged);
    CudaOptions options;
    if (gpu) options.gpu = cuda::Gpu::get().shape(), options.attention = cuda::AttentionLibrary::get();
    options.scheduling = scheduling.and_without("epilogues");
    tell_stages(report, *staged, gpu ? plan_for_gpu(options) : plan_for_processor(native_processor(), scheduling),
                process_bytes_of(graph, graphs.dims, gpu ? DeviceTarget::cuda : DeviceTarget::cpu), nullptr);
    const int64_t of_stage = others.size / staged->stages();
    int changed = 0;
    for (int64_t s = 0; s < staged->stages(); ++s) {
      CAPTURE(s);
      CHECK(*report.pipeline->stages[static_cast<size_t>(s)].peak.value == Rational(bytes_of(*limited, s * of_stage)));
      changed += bytes_of(*limited, s * of_stage) < bytes_of(*as_is, s * of_stage) ? 1 : 0;
    }
    CHECK(changed > 0);
  }
}

TEST_CASE("mesh: under a limit of memory the same bits, the same is sent, and no more is taken") {
  for (const MeshExample& example : sampled(kExamples, 2)) check_bits(example, on_processor);
}

TEST_CASE("mesh on a GPU: under a limit of memory the same bits, the same is sent, and no more is taken") {
  use_test_gpu();
  check_bits(kExamples[2], on_gpu);
}

TEST_CASE("mesh: processes under a limit choose alike, and make the bits of one") {
  const ProgramGraphs graphs = graphs_of(kExamples[2]);
  const ProgramData data = data_for(*graphs.parts[Part::training], graphs.dims);
  const MeshRun wanted = run(*on_processor(graphs, {}, nullptr), data);
  for (const int processes : sampled(std::array{2, 4}, 2)) {
    INFO(processes);
    EincTransport first{};
    first.size = processes;
    const int64_t limit = least_bytes(graphs, on_processor, &first);
    ThreadTransport transport(processes);
    std::vector<std::shared_ptr<const MeshProgram>> programs;
    for (const int rank : {0, processes - 1}) {
      EincTransport own = first;
      own.rank = rank;
      programs.push_back(on_processor(graphs, within(limit), &own));
      CHECK(programs.back()->planned_bytes(1) <= limit);
    }
    std::vector<std::optional<MeshRun>> runs(static_cast<size_t>(processes));
    transport.run([&](const EincTransport& end) {
      const MeshProgram& planned = *programs[end.rank == 0 ? 0 : 1];
      const MeshProgram own(planned.info, planned.mesh(), planned.parts(), &end);
      runs[static_cast<size_t>(end.rank)] = run(own, data);
    });
    for (const std::optional<MeshRun>& made : runs) {
      REQUIRE(made.has_value());
      CHECK(same_bits(made->values, wanted.values));
      CHECK(counted_bytes(made->sent) == counted_bytes(wanted.sent));
    }
  }
}

TEST_CASE("mesh: the report of a device is of the step that runs, under a limit too") {
  for (const size_t i : sampled(std::array{1, 3}, 2))
    check_report(kExamples[i], on_processor, DeviceTarget::cpu,
                 [](const Scheduling& scheduling) { return plan_for_processor(native_processor(), scheduling); });
}

TEST_CASE("mesh on a GPU: the report of a device is of the step that runs, under a limit too") {
  use_test_gpu();
  check_report(kExamples[2], on_gpu, DeviceTarget::cuda, [](const Scheduling& scheduling) {
    CudaOptions options;
    options.gpu = cuda::Gpu::get().shape();
    options.attention = cuda::AttentionLibrary::get();
    options.scheduling = scheduling.and_without("epilogues");
    return plan_for_gpu(options);
  });
}

// Copies of products read params that the backward puts together anyway. Of the rest, which only the forward reads, there is little:
// biases.
TEST_CASE("mesh: under a limit, of a model whose params are spread no more than two layers are whole at once") {
  const auto gathered = [](int layers) {
    const std::string dims = fmt::format("batch=8 seq=32 vocab=96 layers={} heads=2 head=32", layers);
    const ProgramGraphs graphs = graphs_of({"gpt2.ein", dims.c_str(), "data=2", "batch=data; params=data"});
    const auto program = on_processor(graphs, within(least_bytes(graphs, on_processor, nullptr)), nullptr);
    return most_held(*program->parts()[Part::training], CollectiveKind::all_gather);
  };
  const int64_t embed = 64, biases = 9 * embed * 4;
  CHECK(gathered(4) <= gathered(3) + 2 * biases);
}

namespace {

// Of a device as it is, and the least under a limit, for a decoder over a split sequence whose params are spread.
std::pair<int64_t, int64_t> bytes_of_layers(int layers) {
  const std::string dims = fmt::format("batch=1 seq=262144 vocab=32000 layers={} embed=2048 heads=16 kv_heads=4 ffn=7168", layers);
  PipelineOptions options;
  options.dims = dims_of(dims), options.roots = Roots::step;
  options.mesh = "context=8", options.shard = "seq=context; params=context";
  const Compilation c = compile_file("examples/llama.ein", options);
  REQUIRE(c.graph.has_value());
  const auto made = partition_for_mesh(*c.graph, options.dims);
  const Device device = *find_device("h100-sxm");
  const auto plan = [&](std::optional<int64_t> limit) {
    return mesh_step(localize(std::get<Partitioned>(made)), options.dims, plan_for_device(within(limit), device), nullptr, nullptr, {});
  };
  return {plan({}).peak(), least_memory([&] { plan(1); })};
}

}  // namespace

// What is made again lies there for one layer at a time: of the others their inputs stay, and what attention makes and reads (keys and
// values of all devices, 0.54 of the 0.90 GB). Of fewer layers the head, not they, takes the most.
TEST_CASE("mesh: under a limit a layer more takes a part of what it takes without one") {
  const auto few = bytes_of_layers(4), more = bytes_of_layers(7);
  const auto as_is = static_cast<double>(more.first - few.first), least = static_cast<double>(more.second - few.second);
  CHECK(least < 0.33 * as_is);
}

namespace {

// A collective's result that launches read at first and much later, as copies do, loses its place to what is made in between.
bool forgotten_before_a_copy(MeshPlan& plan) {
  const std::vector<Launch>& launches = plan.code.compute.program.launches;
  for (const MeshCollective& c : plan.collectives)
    for (const BoundValue& result : plan.code.bound) {
      if (result.value != c.to) continue;
      std::vector<uint32_t> readers;
      for (uint32_t l = 0; l < launches.size(); ++l)
        if (!is_collective(launches[l]) && std::ranges::count(launches[l].buffers, result.buffer) > 0) readers.push_back(l);
      if (readers.size() < 2) continue;
      for (const BoundValue& made : plan.code.bound)
        if (made.launches > readers.front() + 1 && made.launches <= readers.back() && plan.values[made.value].bytes > 0)
          return plan.values[made.value].offset = plan.values[c.to].offset, true;
    }
  return false;
}

}  // namespace

TEST_CASE("mesh: a plan under a limit whose copies find another value is refused") {
  const ProgramGraphs graphs = graphs_of(kExamples[2]);
  const auto program = on_processor(graphs, within(least_bytes(graphs, on_processor, nullptr)), nullptr);
  MeshPlan spoilt = *program->parts()[Part::training];
  REQUIRE(verify_mesh_plan(spoilt) == "");
  REQUIRE(forgotten_before_a_copy(spoilt));
  CHECK(verify_mesh_plan(spoilt) != "");
}
