// SPDX-License-Identifier: Apache-2.0
// Generated CUDA against PyTorch, on the GPU of the tests.
#include <doctest/doctest.h>

#include "tests/support/run_cuda.h"
#include "tests/support/sample.h"
#include "tests/support/zoo.h"

using namespace einc;

namespace {

void check(ZooRun run) {
  for (const std::string& name : sampled(zoo_models(), 2)) {
    const ZooModel model = load_zoo_model(name);
    CHECK(zoo_problem(model, run, kZooF32, [&] {
            return run_cuda(zoo_graph(model, run), {}, model.inputs, model.params, model.states, zoo_options(run));
          }) == "");
  }
}

}  // namespace

TEST_CASE("cuda: outputs, losses and gradients of whole models") { check(ZooRun::everything); }
TEST_CASE("cuda: what a step makes of their params, in place") { check(ZooRun::step); }
TEST_CASE("cuda: their outputs without training") { check(ZooRun::inference); }
