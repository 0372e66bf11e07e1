// SPDX-License-Identifier: Apache-2.0
// Stages of a loop, carried out: they give what the interpreter makes of the whole program and all examples at once, with equal bits
// whichever processes have them, and send what the report says. A sender of these transports waits for its receiver, so that exchanges in a
// wrong order end in the test's limit of time.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <fstream>

#include "compiler/api/mesh_process.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/report/stage_steps.h"
#include "runtime/base/failure.h"
#include "runtime/mesh/pipeline_plan.h"
#include "runtime/mesh/staged_devices.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/agree/mesh/staged_examples.h"
#include "tests/support/random_check.h"
#include "tests/support/sample.h"

using namespace einc;

namespace {

MeshRun one_run(const MeshProgram& program, const ProgramData& data, int threads = 1) {
  return run_on_mesh(program, data.inputs, data.params, data.states, data.options, threads);
}

std::vector<MeshRun> runs_of(const MeshProgram& program, int processes, const ProgramData& data) {
  return in_processes(program, processes, [&](const MeshProgram& own) { return one_run(own, data); });
}

// What this process has been given to write, touched or not.
int64_t private_bytes() {
  std::ifstream status("/proc/self/status");
  int64_t kib = 0;
  for (std::string word; status >> word;)
    if (word == "VmData:") status >> kib;
  return kib * 1024;
}

int64_t sent_between_stages(const MeshRun& run) {
  int64_t bytes = 0;
  for (const SentBytes& s : run.sent)
    if (s.kind == CollectiveKind::shift && s.mesh_axis == 0) bytes += s.bytes;
  return bytes;
}

// All that a step changes is stored by its last rounds, where the old values lie.
void check_places(const MeshProgram& program) {
  const MeshPlan& plan = *program.parts()[Part::training];
  CHECK(plan.in_place);
  CHECK(plan.updates.size() >= 2 * program.info.params.size());
  CHECK(in_places_of_their_own(plan) == 0);
  for (const PipelineStage& stage : plan.pipeline->stages)
    for (const StageRound& round : stage.rounds) {
      CHECK((round.plan.updates.empty() || &round == &stage.rounds.back()));
      CHECK(round.plan.code.compute.program.copies.empty());
    }
}

}  // namespace

TEST_CASE("mesh stages: examples give what they give whole, and store it where the old values lie") {
  for (const MeshExample& example : sampled(kStaged, 2)) {
    INFO(text_of(example));
    const Graph graph = *compiled(example, Roots::step).graph;
    const Bindings dims = dims_of(example.dims);
    const auto program = compile_for_mesh(graph, dims, RunMode::training);
    check_places(*program);
    const ProgramData data = data_for(graph, dims);
    const MeshRun run = one_run(*program, data);
    REQUIRE(run.fault == NonFinite::nothing);
    const InterpretResult wanted = interpreted(graph, data);
    // A microbatch's dropout is that of its number, as with --accumulate.
    const bool draws = std::ranges::any_of(graph.nodes, [](const Node& node) { return node.op == Op::random; });
    if (!draws) CHECK(result_difference(as_result(run.values, wanted), wanted, example.tolerance) == "");
    CHECK(same_bits(run.values, one_run(*program, data, 3).values));
  }
}

TEST_CASE("mesh stages: processes make the same bits, and send what the report says") {
  for (const MeshExample& example : sampled(kStaged, 2)) {
    const Graph graph = *compiled(example, Roots::step).graph;
    const Bindings dims = dims_of(example.dims);
    const auto program = compile_for_mesh(graph, dims, RunMode::training);
    const ProgramData data = data_for(graph, dims);
    const MeshRun alone = one_run(*program, data);
    const auto made = partition(graph, dims);
    const auto staged = staged_device(std::get<Partitioned>(made), dims);
    REQUIRE(staged);
    const int64_t devices = program->mesh().devices() / staged->stages();
    int64_t foretold = 0;
    for (const StageSend& send : staged->cut.sends)
      foretold += devices * staged->times_moved(send) * static_cast<int64_t>(staged->bytes_of(send.value).to_double());
    INFO(text_of(example));
    CHECK(sent_between_stages(alone) == foretold);
    for (const int processes : {2, 3, 4, 6, 8}) {
      if (program->mesh().devices() % processes != 0) continue;
      const int64_t held = program->mesh().devices() / processes;
      if (held % devices != 0 && devices % held != 0) continue;
      INFO(fmt::format("{} processes", processes));
      int64_t sent = 0;
      for (const MeshRun& run : runs_of(*program, processes, data)) {
        REQUIRE(run.fault == NonFinite::nothing);
        CHECK(same_bits(run.values, alone.values));
        sent += sent_between_stages(run);
      }
      CHECK(sent == foretold);
    }
  }
}

TEST_CASE("mesh stages: the report tells what a process of one device takes") {
  for (const MeshExample& example : sampled(kStaged, 2)) {
    INFO(text_of(example));
    const Graph graph = *compiled(example, Roots::step).graph;
    const Bindings dims = dims_of(example.dims);
    const auto made = partition_for_mesh(graph, dims);
    const auto& partitioned = std::get<Partitioned>(made);
    const auto staged = staged_device(partitioned, dims);
    REQUIRE(staged);
    MeshReport report = mesh_report(graph, partitioned, staged->whole, dims, nullptr, &*staged);
    tell_stages(report, *staged, plan_for_processor(native_processor()), process_bytes_of(graph, dims, DeviceTarget::cpu), nullptr);
    const auto program = compile_for_mesh(graph, dims, RunMode::training);
    const int64_t devices = program->mesh().devices(), of_stage = devices / staged->stages();
    for (int64_t device = 0; device < devices; device += of_stage) {
      EincTransport own{};
      own.size = static_cast<int>(devices), own.rank = static_cast<int>(device);
      const MeshProgram process(program->info, program->mesh(), program->parts(), &own);
      INFO(fmt::format("device {}", device));
      CHECK(*report.pipeline->stages[static_cast<size_t>(device / of_stage)].peak.value == Rational(process.planned_bytes(1)));
    }
  }
}

// What the system gives a process from before its memory is taken to behind it, what does not grow with the model apart.
TEST_CASE("mesh stages: a process takes the memory that is planned") {
  const auto compiled_for = [](int width) {
    const std::string dims = fmt::format("batch=8 seq=64 vocab=64 layers=6 heads=4 head={}", width);
    const MeshExample example{"gpt2.ein", dims.c_str(), "stage=3", "layers=stage(microbatches=4)"};
    return compile_for_mesh(*compiled(example, Roots::step).graph, dims_of(dims), RunMode::training);
  };
  const auto taken = [](const MeshProgram& program, int rank, int processes) {
    EincTransport own{};
    own.size = processes, own.rank = rank;
    const MeshProgram process(program.info, program.mesh(), program.parts(), processes == 1 ? nullptr : &own);
    int64_t largest = 0, inputs = 0;
    for (const TensorInfo& tensor : program.info.params) largest = std::max(largest, tensor.bytes());
    for (const TensorInfo& tensor : program.info.inputs) inputs += tensor.bytes();
    // Whole tensors are the session's, and what is packed is taken when it is needed.
    const int64_t apart = (rank == 0 ? source_bytes(program.info) : inputs + largest) + (processes == 1 ? 0 : 2 * largest);
    const int64_t before = private_bytes();
    const auto runner = process.start(std::make_shared<ThreadPool>(1), kDefaultDevice);
    return std::pair(private_bytes() - before, process.planned_bytes(1) - apart);
  };
  const auto narrow = compiled_for(16), wide = compiled_for(64);
  taken(*narrow, 0, 1);  // the stacks of threads that have ended serve those behind them
  for (const auto& [rank, processes] : {std::pair(0, 1), std::pair(0, 3), std::pair(1, 3), std::pair(2, 3)}) {
    INFO(fmt::format("process {} of {}", rank, processes));
    const auto [small, planned_small] = taken(*narrow, rank, processes);
    const auto [large, planned_large] = taken(*wide, rank, processes);
    CHECK(planned_large - planned_small > 8 << 20);
    CHECK(static_cast<double>(large - small) == doctest::Approx(planned_large - planned_small).epsilon(0.02));
  }
}

// Without rounding it does not matter in which order a mean is taken.
TEST_CASE("mesh stages: several steps in a row, with whole numbers of microbatches, equal those of the whole program") {
  const MeshExample example{"deep_linear.ein", "batch=8 width=3 layers=4", "stage=4", "layers=stage(microbatches=4)"};
  const Graph graph = *compiled(example, Roots::step).graph;
  const Bindings dims = dims_of(example.dims);
  const auto program = compile_for_mesh(graph, dims, RunMode::training);
  ProgramData data = data_for(graph, dims);
  const BoundRun run = start_on_mesh(*program, data, 1);
  for (uint64_t step = 0; step < 4; ++step) {
    REQUIRE(run.runner->run_while_finite(Part::training, 1, step) == NonFinite::nothing);
    const InterpretResult wanted = interpreted(graph, data);
    CHECK(run.runner->loss(Part::training).to_doubles().front() == doctest::Approx(wanted.loss->reals[0]).epsilon(1e-5));
    for (const auto& [path, value] : wanted.params) data.params.insert_or_assign(path, value);
    for (const auto& [path, value] : wanted.states) data.states.insert_or_assign(path, value);
  }
}

// A plan with a fault gives another result, or does not run.
TEST_CASE("mesh stages: planted faults are seen") {
  const MeshExample& example = kStaged[0];
  const Graph graph = *compiled(example, Roots::step).graph;
  const Bindings dims = dims_of(example.dims);
  const auto program = compile_for_mesh(graph, dims, RunMode::training);
  const ProgramData data = data_for(graph, dims);
  const InterpretResult wanted = interpreted(graph, data);
  for (const auto& [name, fault] : pipeline_faults()) {
    INFO(std::string(name));
    PerPart<MeshPlan> parts = program->parts();
    const auto spoilt = std::make_shared<PipelinePlan>(*parts[Part::training]->pipeline);
    fault(*spoilt);
    parts[Part::training]->pipeline = spoilt;
    const MeshProgram wrong(program->info, program->mesh(), std::move(parts), nullptr);
    bool seen = false;
    try {
      const MeshRun run = one_run(wrong, data);
      seen = run.fault != NonFinite::nothing || result_difference(as_result(run.values, wanted), wanted, example.tolerance) != "";
    } catch (const std::exception&) {
      seen = true;
    }
    CHECK(seen);
  }
}

TEST_CASE("mesh stages: sums that are not made where they lie are stored there by each microbatch") {
  const MeshExample& example = kStaged[0];
  const Graph graph = *compiled(example, Roots::step).graph;
  const Bindings dims = dims_of(example.dims);
  const auto program = compile_as(Scheduling::all.and_without("in_place"), graph, dims, RunMode::training);
  const PipelineStage& first = program->parts()[Part::training]->pipeline->stages[0];
  CHECK(!first.rounds[kRoundOfMicrobatches].plan.code.compute.program.copies.empty());
  const ProgramData data = data_for(graph, dims);
  const MeshRun alone = one_run(*program, data);
  const InterpretResult wanted = interpreted(graph, data);
  CHECK(result_difference(as_result(alone.values, wanted), wanted, example.tolerance) == "");
  for (const MeshRun& run : runs_of(*program, 3, data)) CHECK(same_bits(run.values, alone.values));
}

TEST_CASE("mesh stages: what processes have") {
  PipelinePlan pipeline;
  pipeline.stages.resize(6);
  const MeshShape mesh{{"stage", "data"}, {6, 2}};
  const auto blocks = [&](int64_t processes, int64_t rank) { return blocks_of(mesh, pipeline, processes, rank); };
  CHECK(blocks(1, 0).stages == 6);
  CHECK(blocks(3, 1).stages == 2);
  CHECK(blocks(3, 1).number == 1);
  CHECK(blocks(3, 1).held(8) == 2);
  CHECK(blocks(12, 5).stages == 1);
  CHECK(blocks(12, 5).number == 2);
  CHECK(blocks(12, 5).held(3) == 3);
  CHECK(blocks(6, 5).held(9) == 1);
  CHECK_THROWS_AS(blocks(4, 0), RuntimeFailure);
}
