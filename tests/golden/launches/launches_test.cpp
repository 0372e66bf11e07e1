// SPDX-License-Identifier: Apache-2.0
// What a GPU is given to do for some programs: kernels, grids, products, memory. `scripts/golden launches` rewrites the expectations.
#include <doctest/doctest.h>

#include "compiler/driver/launch_plan.h"
#include "compiler/pipeline/pipeline.h"
#include "tests/support/golden_file.h"

using namespace einc;

namespace {

struct Planned {
  const char* name;
  const char* program;
  Bindings dims;
  Policy precision = Policy::inherit;
  RunMode mode = RunMode::training;
};

const Bindings kGpt2{{"batch", 2}, {"seq", 64}, {"vocab", 128}, {"layers", 1}, {"heads", 2}, {"head", 64}};

std::vector<Planned> planned() {
  return {
      {"two_layer", "two_layer", {}},
      {"mlp", "mlp", {}},
      {"attention", "attention", {}},
      {"gpt2_f32", "gpt2", kGpt2, Policy::f32},
      {"gpt2_bf16", "gpt2", kGpt2, Policy::bf16},
      {"gpt2_bf16_inference", "gpt2", kGpt2, Policy::bf16, RunMode::inference},
      {"cnn_bf16", "cnn", {{"batch", 256}}, Policy::bf16},
      {"llama_bf16",
       "llama",
       {{"batch", 2}, {"seq", 64}, {"vocab", 128}, {"layers", 1}, {"embed", 256}, {"heads", 4}, {"kv_heads", 2}, {"ffn", 512}},
       Policy::bf16},
  };
}

// `training`: with or without the outputs, of a step.
std::string plan_of(const Planned& p, Roots training = Roots::step) {
  PipelineOptions options;
  options.dims = p.dims;
  options.precision = p.precision;
  options.roots = p.mode == RunMode::inference ? Roots::inference : training;
  const Compilation compilation = compile_file(std::string("examples/") + p.program + ".ein", options);
  REQUIRE(compilation.graph);
  CudaOptions cuda;
  cuda.mode = p.mode;
  return launch_plan(*compile_for_cuda(*compilation.graph, p.dims, cuda));
}

}  // namespace

TEST_CASE("what a GPU is given to do") {
  for (const Planned& p : planned()) expect_golden(plan_of(p), std::string("tests/golden/launches/") + p.name + ".txt");
}

// Sums of squares of equal layers join: parts of each lie at places of their own, and so do the sums.
TEST_CASE("the norm of all gradients takes as many launches for any number of layers") {
  const auto launches = [](int64_t layers) {
    Planned p = planned()[4];
    p.dims["heads"] = 4;  // matrices large enough to be summed in parts
    p.dims["layers"] = layers;
    const std::string plan = plan_of(p);
    int run = 0, joined = 0;
    for (size_t at = 0; (at = plan.find(" gradient of ", at)) != std::string::npos; ++at) {
      const size_t line = plan.find('\n', at) + 1;
      ++(plan.compare(line, 6, "  with") == 0 ? joined : run);
    }
    return std::pair(run, joined);
  };
  const auto [few, few_joined] = launches(2);
  const auto [many, many_joined] = launches(4);
  CHECK(few > 5);
  CHECK(many <= few + 2);  // what adds them up takes so many operands at most
  CHECK(many_joined > few_joined + 15);
}

// One kernel reads a value, stores it along both axes that products sum over, through tiles, and leaves parts of its largest element; of
// rotated halves, too, which are put together on the way. What norms and the loss make row by row their kernels store in fp8, with the
// largest element of each row, and it is turned from that.
TEST_CASE("an operand of fp8 is read once") {
  const Bindings dims{{"batch", 8},   {"seq", 64},  {"vocab", 1024}, {"layers", 6},
                      {"embed", 256}, {"heads", 4}, {"kv_heads", 4}, {"ffn", 512}};
  const std::string plan = plan_of({"", "llama", dims, Policy::fp8});
  int passes = 0, copies = 0, in_tiles = 0, in_rows = 0, turned = 0;
  for (size_t at = 0, next; (at = plan.find("\nlaunch ", at)) != std::string::npos; at = next) {
    next = std::min(plan.find("\nlaunch ", at + 1), plan.size());
    const std::string launch = plan.substr(at, next - at);
    const size_t writes = launch.find("  writes ");
    const bool transposes = launch.find(" tiles that transpose") != std::string::npos;
    const bool narrows = writes != std::string::npos && launch.find(" f8e", writes) != std::string::npos;
    in_rows += !transposes && narrows && launch.find(" f32[8 64] ", writes) != std::string::npos;
    turned += transposes && narrows && launch.find("  reads f8e") != std::string::npos;
    if (launch.find(".amax, ") == std::string::npos) continue;
    in_tiles += transposes;
    copies += launch.compare(std::min(writes, launch.size()), 11, "  writes f8") == 0;
    passes += launch.compare(std::min(writes, launch.size()), 13, "  writes f32[") == 0 && launch[writes + 13] != ']';
  }
  CHECK(copies == 50);
  CHECK(in_tiles == copies);
  CHECK(in_rows == 26);
  CHECK(turned == in_rows);
  CHECK(passes == 0);
}

// Attention's loss is the sum, and an operand of fp8 the largest element, of what is made of the same two values: of the output, which is
// stored as it is rounded.
TEST_CASE("a sum and the largest element of a value are made in one pass") {
  const std::string plan = plan_of({"", "attention", {}, Policy::fp8}, Roots::training);
  int readers = 0;
  for (size_t at = 0; (at = plan.find("input target", at)) != std::string::npos; ++at) ++readers;
  CHECK(readers == 1);
}

TEST_CASE("the same plan every time") {
  const Planned again = planned()[4];
  CHECK(plan_of(again) == plan_of(again));
}
