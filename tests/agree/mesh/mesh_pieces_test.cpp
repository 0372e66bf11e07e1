// SPDX-License-Identifier: Apache-2.0
// Collectives that go in pieces: they move what they move whole, in less memory, and leave the same bits.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <random>

#include "compiler/api/mesh_parts.h"
#include "compiler/api/mesh_process.h"
#include "compiler/context/partition_for_mesh.h"
#include "compiler/pipeline/cuda_program.h"
#include "compiler/report/mesh_step.h"
#include "runtime/cuda/mesh_moves.h"
#include "runtime/mesh/pipeline_plan.h"
#include "runtime/mesh/transfers.h"
#include "tests/agree/mesh/mesh_run.h"
#include "tests/agree/mesh/staged_examples.h"
#include "tests/support/run_cuda.h"
#include "tests/support/sample.h"
#include "tests/support/test_gpu.h"

using namespace einc;

namespace {

// Where a byte comes from, where it goes, and which of a sum's terms it is; 0 behind the sums.
using Moved = std::array<int64_t, 5>;

int64_t byte_of(const Strip& strip, int64_t at) { return strip.offset + at / strip.width * strip.pitch + at % strip.width; }

void add_moved(const std::vector<Transfer>& list, size_t terms, std::vector<Moved>& moved) {
  for (size_t t = 0; t < list.size(); ++t) {
    const int64_t term = terms == 0 ? 0 : static_cast<int64_t>(t % terms) + 1;
    REQUIRE(list[t].source.bytes() == list[t].target.bytes());
    for (int64_t at = 0; at < list[t].source.bytes(); ++at)
      moved.push_back({list[t].from, byte_of(list[t].source, at), list[t].to, byte_of(list[t].target, at), term});
  }
}

std::vector<Moved> moved_by(const std::vector<CollectiveSteps>& pieces) {
  std::vector<Moved> moved;
  for (const CollectiveSteps& piece : pieces) {
    add_moved(piece.terms, piece.terms_of_sum, moved);
    add_moved(piece.moves, 0, moved);
  }
  std::ranges::sort(moved);
  return moved;
}

// Of a list, those that `has` picks, in its order.
template <class Has>
std::vector<std::array<int64_t, 5>> taken(const std::vector<Transfer>& list, Has has) {
  std::vector<std::array<int64_t, 5>> made;
  for (const Transfer& t : list)
    if (has(t)) made.push_back({t.from, t.to, t.source.offset, t.target.offset, t.source.bytes()});
  return made;
}

// What a device packs and receives in memory of its own, if each is a process.
int64_t room(const CollectiveSteps& piece, int64_t device) {
  int64_t bytes = 0;
  for (const Transfer& t : piece.terms)
    bytes += (t.from == device && t.source.rows > 1) || (t.from != device && t.to == device) ? t.source.bytes() : 0;
  for (const Transfer& t : piece.moves)
    bytes += (t.from == device && t.source.rows > 1) || (t.from != device && t.to == device && t.target.rows > 1) ? t.source.bytes() : 0;
  return bytes;
}

DeviceTensor tensor_of(std::vector<int64_t> shape) {
  int64_t count = 1;
  for (const int64_t size : shape) count *= size;
  return {DType::f32, std::move(shape), count * bytes_of(DType::f32), 0};
}

// The same program, of whose collectives so many bytes are packed at once; how many pieces more there are by it.
std::pair<std::unique_ptr<CudaMeshProgram>, size_t> in_pieces_of(int64_t bytes, const CudaMeshProgram& program) {
  PerPart<MeshPlan> plans = program.parts();
  size_t more = 0;
  const auto set = [&](MeshPlan& plan, const MeshShape& mesh, int stages) {
    plan.most_packed = bytes;
    for (const MeshCollective& c : plan.collectives)
      if (c.mesh_axis != stages)
        more += in_pieces(collective_steps(mesh, c, plan.values[c.from], plan.values[c.to], 0, mesh.devices()), bytes).size() - 1;
  };
  for (std::optional<MeshPlan>& plan : plans) {
    if (!plan) continue;
    set(*plan, program.mesh(), kNoMeshAxis);
    if (!plan->pipeline) continue;
    const auto pipeline = std::make_shared<PipelinePlan>(*plan->pipeline);
    for (PipelineStage& stage : pipeline->stages)
      for (StageRound& round : stage.rounds) set(round.plan, mesh_of_stage(program.mesh(), *pipeline), pipeline->axis);
    plan->pipeline = pipeline;
  }
  FileCache cache(test_cubin_folder());
  return {std::make_unique<CudaMeshProgram>(program.info, program.mesh(), std::move(plans), program.code(), nullptr, MeshProgram::Whole{},
                                            cache, 1),
          more};
}

// Bits of all that a step leaves. Returns how many pieces more than collectives there were.
size_t check_bits(const CudaMeshProgram& program, const ProgramData& data) {
  constexpr int64_t kBytes = 64;
  const auto [small, more] = in_pieces_of(kBytes, program);
  const MeshRun whole = run_on_mesh(program, data.inputs, data.params, data.states, data.options, 1);
  const MeshRun pieces = run_on_mesh(*small, data.inputs, data.params, data.states, data.options, 1);
  REQUIRE(whole.fault == NonFinite::nothing);
  REQUIRE(pieces.fault == NonFinite::nothing);
  CHECK(same_bits(pieces.values, whole.values));
  CHECK(counted_bytes(pieces.sent) == counted_bytes(whole.sent));
  return more;
}

}  // namespace

TEST_CASE("mesh: pieces of a collective move what it moves whole, in the memory that they may take") {
  std::mt19937_64 random(7);
  const auto below = [&](uint64_t n) { return static_cast<int64_t>(random() % n); };
  int cut = 0;
  for (int round = 0; round < 30; ++round) {
    const MeshShape mesh{{"outer", "inner"}, {1 + below(2), 2 + below(3)}};
    const int64_t n = mesh.sizes[1], most = 1 + below(1000);
    MeshCollective c;
    c.mesh_axis = 1;
    std::vector<int64_t> shape{1 + below(3), n * (1 + below(3)), n * (1 + below(12))};
    c.kind = std::array{CollectiveKind::all_reduce, CollectiveKind::reduce_scatter, CollectiveKind::all_gather, CollectiveKind::all_to_all,
                        CollectiveKind::shift}[static_cast<size_t>(below(5))];
    c.divided = static_cast<int>(1 + below(2)), c.gathered = c.kind == CollectiveKind::all_to_all ? 3 - c.divided : c.divided;
    c.by = below(static_cast<uint64_t>(n));
    if (c.kind == CollectiveKind::all_reduce) shape[1] += 1, shape[2] += 1;  // shares that differ by an element
    std::vector<int64_t> result = shape;
    if (c.kind == CollectiveKind::reduce_scatter || c.kind == CollectiveKind::all_to_all) result[static_cast<size_t>(c.divided)] /= n;
    if (c.kind == CollectiveKind::all_gather || c.kind == CollectiveKind::all_to_all) result[static_cast<size_t>(c.gathered)] *= n;
    const DeviceTensor from = tensor_of(shape), to = tensor_of(result);
    const CollectiveSteps steps = collective_steps(mesh, c, from, to, 0, mesh.devices());
    const std::vector<CollectiveSteps> pieces = in_pieces(steps, most);
    INFO(fmt::format("{} of {}, along {} and {}, {} bytes at once", to_string(c.kind), fmt::join(shape, "x"), c.divided, c.gathered, most));
    // What is told to be sent is a formula: here it is counted.
    const std::vector<Moved> whole = moved_by({steps});
    CHECK(moved_by(pieces) == whole);
    CHECK(sent_bytes(mesh, c, from, to) == std::ranges::count_if(whole, [](const Moved& m) { return m[0] != m[2]; }));
    cut += pieces.size() > 1;
    // A device a process, and several that are neighbours: lists of processes have all that concerns them, in one order and as many pieces.
    for (const int64_t processes : {mesh.devices(), n}) {
      const int64_t held = mesh.devices() / processes;
      for (int64_t first = 0; first < mesh.devices(); first += held) {
        const auto has = [&](const Transfer& t) {
          return (t.from >= first && t.from < first + held) || (t.to >= first && t.to < first + held);
        };
        const std::vector<CollectiveSteps> own = in_pieces(collective_steps(mesh, c, from, to, first, first + held), most);
        REQUIRE(own.size() == pieces.size());
        for (size_t p = 0; p < own.size(); ++p) {
          CHECK(taken(own[p].terms, has) == taken(pieces[p].terms, has));
          CHECK(own[p].terms.size() == taken(own[p].terms, has).size());
          CHECK(taken(own[p].moves, has) == taken(pieces[p].moves, has));
          CHECK(own[p].moves.size() == taken(own[p].moves, has).size());
        }
      }
    }
    for (int64_t device = 0; device < mesh.devices(); ++device) {
      int64_t row = 128;  // what is not cut, of each block
      for (const std::vector<Transfer>* list : {&steps.terms, &steps.moves})
        for (const Transfer& t : *list)
          row = std::max({row, t.source.rows > 1 ? t.source.width : 0, t.target.rows > 1 ? t.target.width : 0});
      for (const CollectiveSteps& piece : pieces) {
        CHECK(room(piece, device) <= most + 2 * n * row);
        CHECK(room(piece, device) <= room(pieces.front(), device));
      }
    }
  }
  CHECK(cut > 8);
}

TEST_CASE("mesh on a GPU: collectives in pieces leave the bits of whole ones") {
  size_t more = 0;
  for (const MeshExample& example : sampled(mesh_examples(), 3)) {
    INFO(fmt::format("{} on {}, {}", example.file, example.mesh, example.shard));
    const Graph graph = *compiled(example).graph;
    const Bindings dims = dims_of(example.dims);
    more += check_bits(*compile_for_gpus(graph, dims, RunMode::training), data_for(graph, dims));
  }
  CHECK(more > 0);
}

TEST_CASE("mesh on a GPU: collectives of stages in pieces leave the bits of whole ones") {
  std::vector<MeshExample> examples;
  for (const MeshExample& example : kStaged)
    if (std::string_view(example.mesh).find(',') != std::string_view::npos) examples.push_back(example);
  for (const MeshExample& example : sampled(examples, 4)) {
    INFO(text_of(example));
    const Graph graph = *compiled(example, Roots::step).graph;
    const Bindings dims = dims_of(example.dims);
    CHECK(check_bits(*compile_for_gpus(graph, dims, RunMode::training), data_for(graph, dims)) > 0);
  }
}

// Nothing of it is run: it takes gigabytes.
TEST_CASE("mesh on a GPU: for a large sum a device has room for a piece, and the report tells it") {
  use_test_gpu();
  CudaOptions options;
  options.gpu = cuda::Gpu::get().shape();
  options.attention = cuda::AttentionLibrary::get();
  options.scheduling = Scheduling().and_without("epilogues");
  for (const char* shard : {"", "shard params over data\n"}) {
    INFO(shard);
    const Compilation c =
        compile_text("m.ein",
                     fmt::format("mesh data = 4\nshard b over data\n{}input x: f32[b=4 n=1048576]\n"
                                 "param w: [m=1024 n] ~ ones\nloss = mean((w * x)^2)\nminimize loss using sgd(lr = 0.1)\n",
                                 shard),
                     {});
    REQUIRE(c.graph.has_value());
    ProgramGraphs graphs;
    graphs.parts[Part::training] = *c.graph;
    EincTransport others{};
    others.size = 4;
    const auto program = cuda_mesh_program(graphs, test_cubin_folder(), options.scheduling, &others);
    const MeshPlan& plan = *program->parts()[Part::training];
    int64_t largest = 0;
    for (const MeshCollective& collective : plan.collectives) largest = std::max(largest, plan.values[collective.from].bytes);
    CHECK(largest == int64_t{4} << 30);
    CHECK(packed_bytes(plan, program->mesh(), 0, 1) <= kMostPacked);
    const auto made = partition_for_mesh(*c.graph, {});
    const MeshStep step = mesh_step(localize(std::get<Partitioned>(made)), {}, plan_for_gpu(options),
                                    process_bytes_of(*c.graph, {}, DeviceTarget::cuda), nullptr, {});
    CHECK(step.peak() == program->planned_bytes(1));
  }
}
