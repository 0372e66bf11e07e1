// SPDX-License-Identifier: Apache-2.0
// Whole programs under every policy, each node rounded to its dtype: loss and gradients stay near those of f64.
#include <doctest/doctest.h>

#include <cmath>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/interpret.h"
#include "compiler/ir/text.h"
#include "compiler/ir/verify.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/simplify.h"

using namespace einc;

namespace {

struct Outcome {
  double loss;
  TensorMap gradients;
};

Graph compiled(const std::string& file, const Bindings& dims, Policy policy) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto id = sources.load(EINC_SOURCE_DIR "/" + file, diagnostics);
  REQUIRE(id);
  auto graph = elaborate(sources, *id, {.dims = dims, .precision = policy}, diagnostics);
  REQUIRE(graph);
  return assign_precision(simplify(std::move(*graph), Roots::training), policy);
}

// Small numbers that differ from place to place; positions stay in range.
TensorMap inputs_of(const Graph& graph, const Bindings& dims) {
  TensorMap inputs;
  for (const Node& node : graph.nodes) {
    if (node.op != Op::input) continue;
    std::vector<int64_t> shape;
    for (const Axis& axis : node.type.axes) shape.push_back(*axis.size.evaluate_integer(dims));
    Tensor tensor = Tensor::zeros(node.type.dtype, shape);
    for (size_t i = 0; i < tensor.reals.size(); ++i) tensor.reals[i] = std::sin(static_cast<double>(i));
    for (size_t i = 0; i < tensor.ints.size(); ++i) tensor.ints[i] = static_cast<int64_t>(i * i % 5);
    inputs.emplace(node.as<InputAttr>().name, std::move(tensor));
  }
  return inputs;
}

Outcome outcome(const std::string& file, const Bindings& given, Policy policy, Arithmetic arithmetic) {
  const Graph graph = compiled(file, given, policy);
  for (const std::string& problem : verify(graph)) FAIL_CHECK(problem);
  InterpretOptions options;
  options.arithmetic = arithmetic;
  TensorMap states = initial_states(graph, given, 1);
  if (const auto scale = states.find("optimizer.loss_scale"); scale != states.end())
    scale->second.reals[0] = 256;  // as after some halvings
  InterpretResult run =
      interpret(graph, given, inputs_of(graph, graph.dims.bind(given).values), initial_params(graph, given, 1), states, options);
  REQUIRE(run.loss);
  return {run.loss->reals[0], std::move(run.gradients)};
}

// |a - b| / |b| over all elements.
double distance(const TensorMap& a, const TensorMap& b) {
  double difference = 0, norm = 0;
  for (const auto& [path, tensor] : b)
    for (size_t i = 0; i < tensor.reals.size(); ++i) {
      difference += std::pow(a.at(path).reals[i] - tensor.reals[i], 2);
      norm += std::pow(tensor.reals[i], 2);
    }
  return std::sqrt(difference / norm);
}

void check_policies(const std::string& file, const Bindings& dims) {
  CAPTURE(file);
  const Outcome exact = outcome(file, dims, Policy::f32, Arithmetic::exact);
  struct Row {
    Policy policy;
    double loss, gradients;
  };
  for (const Row& row :
       {Row{Policy::f32, 1e-5, 1e-4}, Row{Policy::bf16, 1e-2, 0.03}, Row{Policy::f16, 1e-2, 0.03}, Row{Policy::fp8, 0.1, 0.3}}) {
    CAPTURE(to_string(row.policy));
    const Outcome rounded = outcome(file, dims, row.policy, Arithmetic::stored);
    CHECK(rounded.loss == doctest::Approx(exact.loss).epsilon(row.loss));
    CHECK(distance(rounded.gradients, exact.gradients) < row.gradients);
  }
}

}  // namespace

TEST_CASE("two layers") { check_policies("examples/two_layer.ein", {{"batch", 8}, {"width", 6}, {"out", 3}}); }

TEST_CASE("GPT-2") {
  check_policies("examples/gpt2.ein", {{"batch", 2}, {"seq", 6}, {"vocab", 7}, {"layers", 2}, {"heads", 2}, {"head", 4}});
}

TEST_CASE("f16: a step whose gradients are not finite changes nothing and halves the loss scale") {
  const Bindings dims{{"batch", 4}, {"width", 3}, {"out", 2}};
  const Graph graph = compiled("examples/two_layer.ein", dims, Policy::f16);
  InterpretOptions options;
  options.arithmetic = Arithmetic::stored;
  TensorMap states = initial_states(graph, dims, 1), params = initial_params(graph, dims, 1, Arithmetic::stored),
            inputs = inputs_of(graph, graph.dims.bind(dims).values);
  const Name scale("optimizer.loss_scale"), good("optimizer.good_steps");
  const InterpretResult fine = interpret(graph, dims, inputs, params, states, options);
  CHECK(fine.states.at(scale).reals[0] == 65536);
  CHECK(fine.states.at(good).reals[0] == 1);
  CHECK(distance(fine.params, params) > 0);
  states.at(good).reals[0] = 1999;
  CHECK(interpret(graph, dims, inputs, params, states, options).states.at(scale).reals[0] == 131072);
  for (auto& [name, tensor] : inputs)
    for (double& x : tensor.reals) x *= 1e5;  // beyond f16
  const InterpretResult skipped = interpret(graph, dims, inputs, params, states, options);
  CHECK(skipped.states.at(scale).reals[0] == 32768);
  CHECK(skipped.states.at(good).reals[0] == 0);
  CHECK(distance(skipped.params, params) == 0);
}
