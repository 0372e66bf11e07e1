// SPDX-License-Identifier: Apache-2.0
// Layers of the bundled library and the language around them, with PyTorch's values: every program of cases.json is interpreted, as
// elaborated and simplified, in the mode that the case names. The backends run the same cases (tests/support/backend_programs).
#include <doctest/doctest.h>

#include <iostream>

#include "compiler/autodiff/gradient_check.h"
#include "compiler/cost/totals.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/layer_cases.h"

using namespace einc;

namespace {

void check_case(const LayerCase& test) {
  CAPTURE(test.name);
  const Graph graph = compile_text(test.program);
  for (const Output& output : graph.outputs) {
    std::string axes;
    for (const Axis& axis : graph.type(output.node).axes) axes += (axes.empty() ? "" : " ") + axis.name.str();
    CAPTURE(output.name.str());
    CHECK(axes == test.axes.at(output.name.str()));
  }
  const Roots roots = test.mode == RunMode::training ? Roots::training : Roots::inference;
  for (const Graph& asked : {graph, simplify(graph, roots)}) {
    InterpretOptions options;
    options.mode = test.mode;
    const InterpretResult found = interpret(asked, {}, test.inputs, test.params_of(asked), test.states_of(asked), options);
    CHECK(found.outputs.size() == test.outputs.size());
    for (const auto& [name, tensor] : found.outputs) CHECK_MESSAGE(test.difference(test.outputs, name, tensor) == "", name.str());
    for (const auto& wanted : test.gradients)
      CHECK_MESSAGE(test.difference(test.gradients, wanted.first, found.gradients.at(wanted.first)) == "", wanted.first.str());
    for (const auto& wanted : test.after)
      CHECK_MESSAGE(test.difference(test.after, wanted.first, found.states.at(wanted.first)) == "", wanted.first.str());
    if (test.mode == RunMode::inference && &asked != &graph)
      for (const auto& [name, value] : found.states) CHECK_MESSAGE(value.reals == test.states.at(name).reals, name.str());
  }
}

}  // namespace

TEST_CASE("layers agree with PyTorch") {
  const std::vector<LayerCase> cases = layer_cases();
  CHECK(cases.size() >= 47);
  for (const LayerCase& test : cases) check_case(test);
  std::cout << cases.size() << " cases of layers\n";
}

TEST_CASE("dropout_path leaves examples out whole, in a step only") {
  const std::string program = "import nn\ndim b = 64, n = 5\ninput x: f64[b n]\noutput y = dropout_path(x, 0.25)\n";
  const Graph graph = compile_text(program);
  const TensorMap inputs = some_inputs(graph, {});
  const Tensor& x = inputs.at(Name("x"));
  InterpretOptions options;
  const Tensor dropped = interpret(graph, {}, inputs, {}, {}, options).outputs.at(0).second;
  int left_out = 0;
  for (size_t b = 0; b < 64; ++b) {
    const bool out = dropped.reals[b * 5] == 0;
    left_out += out;
    for (size_t n = 0; n < 5; ++n) CHECK(dropped.reals[b * 5 + n] == doctest::Approx(out ? 0 : x.reals[b * 5 + n] / 0.75));
  }
  CHECK(left_out > 6);  // of 64, 16 are expected
  CHECK(left_out < 28);
  options.mode = RunMode::inference;
  CHECK(interpret(graph, {}, inputs, {}, {}, options).outputs.at(0).second.reals == x.reals);
}

TEST_CASE("gradients of recurrences and experts are those of finite differences") {
  int checked = 0;
  for (const LayerCase& test : layer_cases()) {
    if (test.name.rfind("lstm", 0) != 0 && test.name.rfind("gru", 0) != 0 && test.name.rfind("mixture", 0) != 0) continue;
    CAPTURE(test.name);
    const Graph graph = compile_text(test.program);
    for (const GradientError& e : check_gradients(graph, {}, test.inputs, test.params_of(graph), test.states_of(graph))) {
      CAPTURE(e.path.str());
      CHECK(e.error < 2e-6);
      CHECK(e.compared > 0);
      ++checked;
    }
  }
  CHECK(checked == 2 * 3 + 2 * 4 + 4 * 3);
}

// Forward products: the router's 2 n c experts, and 4 c hidden for each slot, of which there are capacity/100 * top * n. All experts
// of all tokens would take experts/top times as much.
TEST_CASE("a mixture of experts costs its chosen experts") {
  const Graph graph = simplify(compile_text("import nn\ndim n = 64, c = 8, hidden = 32, experts = 16\ninput x: f32[n c]\n"
                                            "y, balance = mixture_of_experts(x, hidden, experts, top = 2, capacity = 150)\n"
                                            "minimize sum(y^2) + balance using sgd(lr = 1)\n"),
                               Roots::training);
  const Poly formula = count_flops(graph, constant_nodes(graph)).of(Phase::forward, FlopClass::contraction);
  CHECK(formula.evaluate_integer(graph.dims.bind({}).values) == 2 * 64 * 8 * 16 + 4 * 8 * 32 * (2 * 64 * 3 / 2));
}
