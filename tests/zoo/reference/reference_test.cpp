// SPDX-License-Identifier: Apache-2.0
// The interpreter against PyTorch: as the model is written, and after the passes.
#include <doctest/doctest.h>

#include "tests/support/zoo.h"

using namespace einc;

namespace {

constexpr ZooBound kBound = {1e-9, 1e-9};  // both compute in f64; the files hold eleven digits

CpuRun run(const ZooModel& model, const Graph& graph) {
  InterpretResult result = interpret(graph, {}, model.inputs, model.params, model.states);
  return {std::move(result.outputs), std::move(result.loss), std::move(result.params), std::move(result.states),
          std::move(result.gradients)};
}

}  // namespace

TEST_CASE("the interpreter gives PyTorch's values of whole models") {
  for (const std::string& name : zoo_models()) {
    const ZooModel model = load_zoo_model(name);
    CHECK(zoo_problem(model, ZooRun::everything, kBound, [&] { return run(model, model.elaborated); }) == "");
    CHECK(zoo_problem(model, ZooRun::everything, kBound, [&] { return run(model, zoo_graph(model, ZooRun::everything)); }) == "");
  }
}
