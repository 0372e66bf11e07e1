// SPDX-License-Identifier: Apache-2.0
// Sums of what devices have: they lie where their terms do.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>

#include "compiler/api/verify_mesh.h"
#include "tests/agree/mesh/mesh_run.h"

using namespace einc;

namespace {

struct Planned {
  std::shared_ptr<const MeshProgram> program;
  const MeshPlan& plan() const { return *program->parts()[Part::training]; }
};

Planned planned(const char* mesh, const char* shard) {
  const MeshExample example{"gpt2.ein", "batch=4 seq=8 vocab=64 layers=2 heads=4 head=16", mesh, shard};
  return {compile_for_mesh(*compiled(example).graph, dims_of(example.dims), RunMode::training)};
}

int64_t bytes_of_params(const MeshProgram& program) {
  int64_t bytes = 0;
  for (const TensorInfo& param : program.info.params) bytes += param.bytes();
  return bytes;
}

}  // namespace

TEST_CASE("mesh: sums of gradients and of activations lie where their terms do") {
  for (const auto& [mesh, shard] : {std::pair("data=2", "batch=data"), std::pair("model=2", "heads,hidden,vocab=model"),
                                    std::pair("data=2,model=2", "batch=data; heads,hidden=model")}) {
    INFO(std::string(shard));
    const Planned p = planned(mesh, shard);
    int sums = 0;
    for (const MeshCollective& c : p.plan().collectives) {
      if (c.kind != CollectiveKind::all_reduce) continue;
      ++sums;
      CHECK(c.from == c.to);
    }
    CHECK(sums >= 4 * 2);  // of two layers at least four
  }
}

// Params, gradients, and AdamW's two moments of each: 16 bytes a param. Besides, inputs, sums of activations and what the loss is made of.
TEST_CASE("mesh: where the batch is split a device has each gradient once") {
  const Planned p = planned("data=2", "batch=data");
  const int64_t params = bytes_of_params(*p.program);
  CHECK(p.plan().bytes >= 4 * params);
  CHECK(p.plan().bytes < 4 * params + params / 10);
}

TEST_CASE("mesh: a launch that reads terms behind the sum in their place is found") {
  const Planned p = planned("data=2", "batch=data");
  MeshPlan plan = p.plan();
  REQUIRE(verify_mesh_plan(plan) == "");
  Executable& code = plan.code.compute.program;
  const uint32_t terms = plan.collectives.front().from;
  const auto makes = [&](const BoundValue& bound) { return bound.value == terms && bound.launches > 0; };
  const auto bound = std::ranges::find_if(plan.code.bound, makes);
  REQUIRE(bound != plan.code.bound.end());
  const Launch maker = code.launches[bound->launches - 1];
  const auto number = static_cast<uint32_t>(code.launches.size());
  code.launches.push_back(maker);
  plan.steps.push_back({DeviceAct::compute, 0, number, number + 1});
  CHECK(verify_mesh_plan(plan).find("wants the old value") != std::string::npos);
}

// Of params that all devices have, each updates a part, and makes no more of them than that.
TEST_CASE("mesh: where moments are split the optimizer makes its part of what follows from params") {
  for (const auto& [mesh, shard] :
       {std::pair("data=4", "batch=data; states=data"), std::pair("data=4,model=2", "batch=data; heads,hidden,vocab=model; states=data")}) {
    INFO(std::string(shard));
    const Planned p = planned(mesh, shard);
    const Executable& code = p.plan().code.compute.program;
    uint32_t behind = 0, computed = 0;  // launches: when the last sum of gradients starts
    for (const DeviceStep& step : p.plan().steps) {
      if (step.act == DeviceAct::compute) computed = step.last;
      if (step.act == DeviceAct::start && p.plan().collectives[step.index].kind == CollectiveKind::reduce_scatter) behind = computed;
    }
    std::vector<bool> others(code.buffers.size(), false), made(code.buffers.size(), false);
    for (const BoundValue& bound : p.plan().code.bound) others[bound.buffer] = true;
    for (uint32_t l = 0; l < code.launches.size(); ++l)
      for (const uint32_t buffer : code.launches[l].buffers) (l < behind ? others : made)[buffer] = true;
    int64_t largest = 0;  // in memory, of what the optimizer makes for itself
    for (size_t buffer = 0; buffer < code.buffers.size(); ++buffer)
      if (made[buffer] && !others[buffer]) largest = std::max(largest, code.buffers[buffer].bytes);
    int64_t param = 0;
    for (const TensorInfo& info : p.program->info.params) param = std::max(param, info.bytes());
    CHECK(largest <= param / 4);
  }
}
