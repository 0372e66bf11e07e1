// SPDX-License-Identifier: Apache-2.0
// Code generated for this processor against PyTorch.
#include <doctest/doctest.h>

#include "tests/support/zoo.h"

using namespace einc;

namespace {

void check(ZooRun run) {
  for (const std::string& name : zoo_models()) {
    const ZooModel model = load_zoo_model(name);
    CHECK(zoo_problem(model, run, kZooF32, [&] {
            return run_cpu(zoo_graph(model, run), {}, model.inputs, model.params, model.states, zoo_options(run), 2);
          }) == "");
  }
}

}  // namespace

TEST_CASE("cpu: outputs, losses and gradients of whole models") { check(ZooRun::everything); }
TEST_CASE("cpu: what a step makes of their params, in place") { check(ZooRun::step); }
TEST_CASE("cpu: their outputs without training") { check(ZooRun::inference); }
