// SPDX-License-Identifier: Apache-2.0
// The bundled examples through text, verifier and interpreter, before and after simplification.
#include <doctest/doctest.h>

#include <cmath>
#include <filesystem>

#include "compiler/ir/print.h"
#include "compiler/ir/read.h"
#include "compiler/ir/verify.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

void check_text_and_rules(const std::string& name, const Graph& graph) {
  for (const std::string& problem : verify(graph)) {
    FAIL_CHECK(name, ": ", problem);
    break;
  }
  const std::string text = print_graph(graph);
  const auto result = read_graph(text);
  if (const auto* error = std::get_if<GraphReadError>(&result))
    FAIL_CHECK(name, ": line ", error->line, ": ", error->message);
  else
    CHECK_MESSAGE(print_graph(std::get<Graph>(result)) == text, name);
}

const Bindings kSmallGpt2{{"batch", 2}, {"seq", 8}, {"vocab", 11}, {"layers", 2}, {"heads", 2}, {"head", 4}};

}  // namespace

TEST_CASE("examples: each prints, reads back and verifies, before and after simplification") {
  for (const auto& entry : std::filesystem::directory_iterator(EINC_SOURCE_DIR "/examples")) {
    if (entry.path().extension() != ".ein") continue;
    const std::string name = entry.path().filename().string();
    Graph graph = compile_example(name);
    check_text_and_rules(name, graph);
    check_text_and_rules(name + " simplified", simplify(std::move(graph), Roots::training));
  }
}

TEST_CASE("examples: a GPT-2 of small dims takes a training step, the same with and without simplification") {
  const Graph graph = compile_example("gpt2.ein", kSmallGpt2);
  const Graph simple = simplify(graph, Roots::training);
  const InterpretResult a = run_graph(graph, kSmallGpt2), b = run_graph(simple, kSmallGpt2);
  CHECK(a.loss->reals[0] == doctest::Approx(std::log(11)).epsilon(0.1));
  CHECK(b.loss->reals[0] == doctest::Approx(a.loss->reals[0]).epsilon(1e-12));
  CHECK(a.gradients.size() > 10);
  for (const auto& [path, gradient] : a.gradients)
    for (size_t i = 0; i < gradient.reals.size(); ++i)
      if (std::fabs(gradient.reals[i] - b.gradients.at(path).reals[i]) > 1e-12) FAIL_CHECK(path.str(), " differs at ", i);
  InterpretOptions stored;
  stored.arithmetic = Arithmetic::stored;
  CHECK(run_graph(simple, kSmallGpt2, stored).loss->reals[0] == doctest::Approx(a.loss->reals[0]).epsilon(1e-6));
}

TEST_CASE("examples: inference computes no gradients and no optimizer") {
  const Graph graph = simplify(compile_example("gpt2.ein", kSmallGpt2), Roots::training);
  InterpretOptions options;
  options.mode = RunMode::inference;
  const InterpretResult result = run_graph(graph, kSmallGpt2, options);
  CHECK(result.outputs.size() == 1);
  CHECK(count_phase(graph, result, Phase::forward).contraction > 0);
  CHECK(count_phase(graph, result, Phase::backward) == Counts{});
  CHECK(count_phase(graph, result, Phase::optimizer) == Counts{});
}
