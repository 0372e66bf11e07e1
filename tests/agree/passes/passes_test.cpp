// SPDX-License-Identifier: Apache-2.0
// No pass changes what a program means: the interpreter gives the same, to the tenth digit, before and behind each. Code generation rounds,
// so that its comparisons would not see a rule that loses digits.
#include <doctest/doctest.h>

#include <functional>

#include "compiler/pipeline/pipeline.h"
#include "tests/support/agree.h"
#include "tests/support/random_check.h"
#include "tests/support/zoo.h"

using namespace einc;

namespace {

constexpr double kAllowed = 1e-10;

struct Level {
  std::string pass;  // that made it
  Graph graph;
};

using Spoil = std::function<void(Level& level)>;

std::vector<Level> levels_of(const Graph& elaborated, RunMode mode) {
  std::vector<Level> levels;
  PipelineOptions options;
  if (mode == RunMode::inference) options.roots = Roots::inference;
  options.observe = [&](std::string_view pass, const Graph& graph, double) { levels.push_back({std::string(pass), graph}); };
  run_passes(elaborated, options);
  return levels;
}

CpuRun as_run(InterpretResult result) {
  return {std::move(result.outputs), std::move(result.loss), std::move(result.params), std::move(result.states),
          std::move(result.gradients)};
}

InterpretResult interpreted(const Wanted& given, const Graph& graph) {
  return interpret(graph, {}, given.inputs, given.params, given.states, given.options);
}

// "" or what the first pass changes that changes something. `spoil` may do so too.
std::string wrong_pass(Wanted given, const Spoil& spoil = {}) {
  given.tolerance = kAllowed;
  for (Level& level : levels_of(given.elaborated, given.options.mode)) {
    if (spoil) spoil(level);
    // Precision adds casts. Without roundings they change nothing; before it, those that the program holds are part of its meaning.
    given.options.arithmetic = level.pass == "precision" ? Arithmetic::exact : Arithmetic::casts;
    given.exact = interpreted(given, given.elaborated);
    const InterpretResult behind = interpreted(given, level.graph);
    given.near = {behind};
    for (TensorMap InterpretResult::*values : {&InterpretResult::params, &InterpretResult::states, &InterpretResult::gradients})
      for (auto& [name, value] : given.near.front().*values)
        if (const auto exact = (given.exact.*values).find(name); exact != (given.exact.*values).end()) value = exact->second;
    given.near.front().outputs = given.exact.outputs;
    given.near.front().loss = given.exact.loss;
    if (const std::string d = certain_difference(given, as_run(behind)); !d.empty()) return level.pass + ": " + d;
    given.elaborated = std::move(level.graph);
  }
  return "";
}

std::string wrong_pass(const std::string& text, uint64_t seed, RunMode mode) {
  std::string problem;
  std::optional<Wanted> given = interpret_text(text, seed, problem, mode);
  return given ? wrong_pass(std::move(*given)) : problem;
}

std::string disagreement_of_passes(const std::string& text, uint64_t seed) {
  return wrong_pass(text, seed, seed % 4 == 0 ? RunMode::inference : RunMode::training);
}

Wanted zoo_program(const std::string& name) {
  ZooModel model = load_zoo_model(name);
  Wanted given;
  given.elaborated = std::move(model.elaborated);
  given.inputs = std::move(model.inputs);
  given.params = std::move(model.params);
  given.states = std::move(model.states);
  return given;
}

// A program with something for each rule to take hold of.
constexpr const char* kFoldable = R"(
dim n = 6
input x: f32[n]
param w: [n] ~ normal(std = 1)
scale = sqrt(2.0) * tanh(0.5)
y = softmax(w * x * scale - 0.25 * x, n)
output z = y - 3 * w
loss = mean(y^2)
minimize loss using sgd(lr = 0.1)
)";

Spoil at(const std::string& pass, const std::function<bool(Node&)>& change) {
  return [=](Level& level) {
    if (level.pass != pass) return;
    bool done = false;
    for (Node& node : level.graph.nodes)
      if (!done) done = change(node);
    CHECK_MESSAGE(done, "nothing to change behind ", pass);
  };
}

}  // namespace

TEST_CASE("passes keep what random programs mean") { check_random_programs(1, 600, disagreement_of_passes); }

TEST_CASE("passes keep what programs once compiled wrongly mean") { check_regress_programs(disagreement_of_passes); }

TEST_CASE("passes keep what the models of the zoo mean") {
  for (const std::string& name : zoo_models()) {
    CAPTURE(name);
    CHECK(wrong_pass(zoo_program(name)) == "");
  }
}

TEST_CASE("what a pass changes is found, and the pass named") {
  std::string problem;
  const std::optional<Wanted> given = interpret_text(kFoldable, 1, problem);
  REQUIRE_MESSAGE(given.has_value(), problem);
  REQUIRE(wrong_pass(*given) == "");
  // A folded constant wrong in the ninth digit.
  const auto constant = [](Node& node) {
    if (node.op != Op::constant || !std::holds_alternative<double>(node.as<ConstantAttr>().value)) return false;
    std::get<double>(std::get<ConstantAttr>(node.attr).value) *= 1 + 1e-8;
    return true;
  };
  CHECK(wrong_pass(*given, at("simplify", constant)).starts_with("simplify: value: "));
  const auto exchange = [](Node& node) {
    if (node.op != Op::map || node.as<MapAttr>().fn != MapFn::sub) return false;
    std::swap(node.operands[0], node.operands[1]);
    std::swap(std::get<MapAttr>(node.attr).maps[0], std::get<MapAttr>(node.attr).maps[1]);
    return true;
  };
  for (const char* pass : {"expand", "simplify", "precision"})
    CHECK(wrong_pass(*given, at(pass, exchange)).starts_with(std::string(pass) + ": value: "));
}
