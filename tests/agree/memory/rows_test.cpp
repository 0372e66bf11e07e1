// SPDX-License-Identifier: Apache-2.0
// The rows of memory that a report shows: they add up to what a run takes, and are what is alive at the fullest launch. Lifetimes are read
// off the kernels again, byte by byte, with nothing of the planner.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "compiler/codegen/llvm/native_code.h"
#include "compiler/lower/divide_reductions.h"
#include "compiler/pipeline/cpu_program.h"
#include "compiler/pipeline/cuda_program.h"
#include "tests/support/sample.h"
#include "tests/support/zoo.h"

using namespace einc;

namespace {

// Bytes of the arena that some value takes at launch k.
int64_t alive_at(const FormedGraph& formed, uint32_t k) {
  const auto& kernels = formed.list.kernels;
  std::map<uint32_t, std::pair<uint32_t, uint32_t>> lives;  // by the node whose buffer it is
  const auto touch = [&](NodeId id, uint32_t at) {
    if (!id.valid()) return;
    id = formed.plan.holder(id);
    const auto [life, fresh] = lives.try_emplace(id.index, at, at);
    if (!fresh) life->second.second = std::max(life->second.second, at);
  };
  for (uint32_t at = 0; at < kernels.size(); ++at)
    for (NodeId id : kernels[at].buffers) touch(id, at);
  for (NodeId id : formed.roots)
    if (formed.list.in_memory[id.index]) touch(id, static_cast<uint32_t>(kernels.size()));
  std::vector<std::pair<int64_t, int64_t>> places;
  for (const auto& [node, life] : lives) {
    const BufferPlan::Buffer& b = formed.plan.buffers[node];
    const bool in_arena = b.place == BufferPlace::arena || b.place == BufferPlace::shared;
    if (in_arena && life.first <= k && k <= life.second) places.emplace_back(b.offset, b.offset + b.bytes);
  }
  std::sort(places.begin(), places.end());
  int64_t bytes = 0, end = 0;
  for (const auto& [from, to] : places) {
    bytes += std::max<int64_t>(0, to - std::max(from, end));
    end = std::max(end, to);
  }
  return bytes;
}

void check_rows(const PlannedStep& step, int64_t taken) {
  const PlannedMemory& m = step.memory;
  for (const int64_t row : {m.parameters, m.gradients, m.optimizer_state, m.state, m.inputs, m.saved, m.workspace, m.fragmentation})
    CHECK(row >= 0);
  CHECK(m.total() == taken);
  const BufferPlan& plan = step.formed->plan;
  const int64_t fullest = plan.fullest.saved + plan.fullest.others;
  CHECK(fullest == alive_at(*step.formed, plan.fullest.launch));
  CHECK(plan.fullest.saved <= plan.saved_bytes);
  for (uint32_t k = 0; k <= step.formed->list.kernels.size(); ++k) CHECK(alive_at(*step.formed, k) <= fullest);
}

}  // namespace

TEST_CASE("rows of memory: they add up to what a run takes, on a processor and on a GPU") {
  for (const std::string& name : sampled(zoo_models(), 2))
    for (const Policy policy : {Policy::f32, Policy::bf16, Policy::fp8}) {
      const ZooModel model = load_zoo_model(name, policy);
      for (const ZooRun run : {ZooRun::step, ZooRun::inference}) {
        const Graph graph = zoo_graph(model, run, policy);
        const RunMode mode = run == ZooRun::inference ? RunMode::inference : RunMode::training;
        CAPTURE(name);
        CAPTURE(policy);
        CAPTURE(mode);
        {
          CpuOptions options;
          options.mode = mode;
          const Executable program = lower_graph(graph, {}, options)->lowered.program;
          check_rows(plan_for_processor(native_processor())(graph, {}, mode, {}), program.memory_bytes + program.scratch_bytes);
        }
        CudaOptions options;
        options.mode = mode;
        const CudaExecutable executable = compile_for_cuda(graph, {}, options)->executable;
        check_rows(plan_for_gpu({})(graph, {}, mode, {}), executable.program.memory_bytes + executable.workspace_bytes);
      }
    }
}
