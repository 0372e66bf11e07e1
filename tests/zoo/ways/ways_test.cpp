// SPDX-License-Identifier: Apache-2.0
// Other ways to generate code for this processor: without fusion, with everything recomputed, and in bf16.
#include <doctest/doctest.h>

#include "tests/support/sample.h"
#include "tests/support/zoo.h"

using namespace einc;

namespace {

// Values of so small models are otherwise too small to be recomputed.
const Scheduling kRecomputing = [] {
  Scheduling scheduling;
  scheduling.recompute = {0, 0};
  return scheduling;
}();

std::string problem(const std::string& name, const ZooBound& bound, Policy precision, const Scheduling& scheduling) {
  const ZooModel model = load_zoo_model(name, precision);
  return zoo_problem(model, ZooRun::everything, bound, [&] {
    return run_cpu(zoo_graph(model, ZooRun::everything, precision), {}, model.inputs, model.params, model.states, {}, 2, scheduling);
  });
}

}  // namespace

TEST_CASE("whole models: the backward recomputes all that it may") {
  for (const std::string& name : sampled(zoo_models(), 2)) CHECK(problem(name, kZooF32, Policy::f32, kRecomputing) == "");
}

TEST_CASE("whole models: every node a kernel of its own") {
  for (const std::string& name : sampled(zoo_models(), 2)) CHECK(problem(name, kZooF32, Policy::f32, Scheduling::unfused) == "");
}

// bf16 rounds each operand of a product by up to 2^-9 = 0.2 %: outputs may be off by some of these, gradients, which go through twice as
// many products, by more. Only smooth models: a rounding that turns a ReLU, a maximum or a choice of experts changes a gradient by itself.
TEST_CASE("whole models: in bf16") {
  constexpr ZooBound kBf16 = {2.5e-2, 7e-2};
  for (const char* name : {"bert", "convnext", "gated", "llama", "lstm", "unet", "vae", "vit"})
    CHECK(problem(name, kBf16, Policy::bf16, Scheduling::all) == "");
}
