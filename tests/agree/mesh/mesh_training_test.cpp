// SPDX-License-Identifier: Apache-2.0
// Training over ten meshes each: twenty steps leave the same bits in params and states, and the same losses, in one process, in all numbers
// of processes that fit and with several threads. What one step gives is mesh_test.cpp's.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <optional>
#include <string>
#include <vector>
#include "tests/agree/mesh/mesh_run.h"
#include "tests/support/sample.h"
#include "tests/support/thread_transport.h"

using namespace einc;

namespace {

constexpr uint64_t kSteps = 20;

struct Trained {
  const char* file;
  const char* dims;
  const char* model;  // axes that a mesh axis `model` of two devices splits; null: none
  const char* batch;  // the axis of the examples; null: the program draws its own
  const char* loop;   // whose iterations stages share; null: none
};
// All examples that train but lstm.ein, which draws its examples itself, and has a recurrence, whose other axes no rule splits.
constexpr Trained kTrained[] = {
    {"gpt2.ein", "batch=8 seq=6 vocab=16 layers=4 heads=4 head=4", "heads,hidden,vocab", "batch", "layers"},
    {"nanogpt.ein", "batch=8 seq=4 vocab=12 layers=4 heads=2 head=3", "heads,hidden,vocab", "batch", "layers"},
    {"llama.ein", "batch=8 seq=4 vocab=12 layers=4 embed=8 heads=4 kv_heads=2 ffn=6", "kv_heads,ffn,vocab", "batch", "layers"},
    {"shakespeare_char.ein", "batch=8 seq=4 vocab=12 layers=4 heads=2 head=3", "heads,hidden,vocab", "batch", "layers"},
    {"shakespeare_large.ein", "batch=8 seq=4 vocab=12 layers=4 heads=2 head=3", "heads,hidden,vocab", "batch", "layers"},
    {"shakespeare_llama.ein", "batch=8 seq=4 vocab=12 layers=4 heads=4 kv_heads=2 head=4 ffn=6", "kv_heads,ffn,vocab", "batch", "layers"},
    {"vit.ein", "batch=8 rows=2 cols=2 side=2 layers=4 heads=2 head=2", "heads,hidden", "batch", "layers"},
    {"deep_linear.ein", "batch=8 width=4 layers=4", nullptr, "batch", "layers"},
    {"attention.ein", "batch=8 seq=6 heads=2 head=4", "heads", "batch", nullptr},
    {"mlp.ein", "batch=8 features=6 hidden=8 classes=6", "hidden", "batch", nullptr},
    {"lora.ein", "batch=8 width=8 out=8 rank=2", "out", "batch", nullptr},
    {"two_layer.ein", "batch=8 width=8 out=8", "out", "batch", nullptr},
    {"cnn.ein", "batch=8 height=8 width=8", nullptr, "batch", nullptr},
    {"resnet.ein", "batch=8 height=8 width=8", nullptr, "batch", nullptr},
    {"diffusion.ein", "batch=8 small=4 embed=8", nullptr, "batch", nullptr},
    {"moe.ein", "batch=16 features=4 kinds=4 experts=4 hidden=8", "experts", nullptr, nullptr},
    {"graph.ein", "nodes=16 edges=32 hidden=8 classes=2", "classes", nullptr, nullptr}};

// "B": the axis of the examples, "M": those of `model`, "L": the loop.
struct MeshRow {
  const char* axes;
  const char* rules;
};
constexpr MeshRow kMeshes[] = {{"data=2", "B=data"},
                               {"data=8", "B=data"},
                               {"data=4", "B=data; states=data"},
                               {"data=4", "B=data; gradients=data"},
                               {"data=4", "B=data; params=data"},
                               {"pod=2,data=2", "B=pod,data; states=data"},
                               {"model=2", "M=model"},
                               {"data=4,model=2", "B=data; M=model; params=data"},
                               {"stage=4", "L=stage(microbatches=4)"},
                               {"stage=2,data=2", "L=stage(microbatches=2); B=data; states=data"}};

// None: the program has no such axis.
std::optional<std::string> rules_of(const MeshRow& mesh, const Trained& trained) {
  std::string text;
  for (const char* c = mesh.rules; *c != '\0'; ++c) {
    const char* name = *c == 'B' ? trained.batch : *c == 'M' ? trained.model : *c == 'L' ? trained.loop : "";
    if (name == nullptr) return std::nullopt;
    text += *name != '\0' ? std::string(name) : std::string(1, *c);
  }
  return text;
}

struct Left {
  std::vector<std::byte> values;  // of params and states
  std::vector<double> losses;
  friend bool operator==(const Left&, const Left&) = default;
};

Left train(const MeshProgram& program, const ProgramData& data, int threads) {
  const BoundRun run = start_on_mesh(program, data, threads);
  Left left;
  for (uint64_t step = 0; step < kSteps; ++step) {
    if (run.runner->run_while_finite(Part::training, data.options.seed, step) != NonFinite::nothing) return left;
    left.losses.push_back(run.runner->loss(Part::training).to_doubles().front());
  }
  for (const SourceKind kind : {SourceKind::param, SourceKind::state})
    for (uint32_t i = 0; i < run.memory[static_cast<size_t>(kind)].size(); ++i) {
      run.runner->fetch({kind, i});
      const std::vector<std::byte>& bytes = run.memory[static_cast<size_t>(kind)][i].bytes;
      left.values.insert(left.values.end(), bytes.begin(), bytes.end());
    }
  return left;
}

void check_processes(const MeshProgram& program, const ProgramData& data, const Left& alone) {
  for (const int processes : {2, 4, 8}) {
    if (program.mesh().devices() % processes != 0) continue;
    INFO(fmt::format("{} processes", processes));
    ThreadTransport transport(processes);
    std::vector<Left> each(static_cast<size_t>(processes));
    transport.run([&](const EincTransport& end) {
      const MeshProgram own(program.info, program.mesh(), program.parts(), &end);
      each[static_cast<size_t>(end.rank)] = train(own, data, 1);
    });
    for (const Left& left : each) CHECK((left == alone));
  }
}

}  // namespace

TEST_CASE("mesh: twenty steps over ten meshes leave the same bits in any number of processes") {
  const Sample sample(24);
  size_t number = 0, run = 0;
  for (const Trained& trained : kTrained)
    for (const MeshRow& mesh : kMeshes) {
      const auto rules = rules_of(mesh, trained);
      if (!rules || !sample.takes(number++)) continue;
      INFO(fmt::format("{} on {}, {}", trained.file, mesh.axes, *rules));
      const Graph graph = *compiled({trained.file, trained.dims, mesh.axes, rules->c_str()}, Roots::step).graph;
      const Bindings dims = dims_of(trained.dims);
      const ProgramData data = data_for(graph, dims);
      const auto program = compile_for_mesh(graph, dims, RunMode::training);
      const Left alone = train(*program, data, 1);
      REQUIRE(alone.losses.size() == kSteps);
      CHECK((train(*program, data, 3) == alone));
      check_processes(*program, data, alone);
      ++run;
    }
  CHECK(run > 0);
}
