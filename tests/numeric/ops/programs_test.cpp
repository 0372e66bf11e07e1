// SPDX-License-Identifier: Apache-2.0
// What the interpreter makes of whole small programs that PyTorch has no counterpart for: states written in place, random
// numbers, dropout, initialisers with dims in their arguments, and positions that are only checked once dims have values.
#include <doctest/doctest.h>

#include <cmath>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/interpret.h"
#include "dsl/render.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

Graph compile(const std::string& text, const Bindings& dims = {}) {
  SourceMap sources;
  Diagnostics diagnostics;
  const auto file = sources.add("program.ein", text, diagnostics);
  REQUIRE(file);
  ElaborateOptions options;
  options.dims = dims;
  auto graph = elaborate(sources, *file, options, diagnostics);
  if (!graph) FAIL(render_text(sources, diagnostics));
  return std::move(*graph);
}

std::string errors(const std::string& text, const Bindings& dims) {
  SourceMap sources;
  Diagnostics diagnostics;
  ElaborateOptions options;
  options.dims = dims;
  elaborate(sources, *sources.add("program.ein", text, diagnostics), options, diagnostics);
  return render_text(sources, diagnostics);
}

InterpretResult run(const Graph& graph, const TensorMap& inputs, const InterpretOptions& options = {}) {
  return interpret(graph, {}, inputs, initial_params(graph, {}, options.seed), initial_states(graph, {}, options.seed), options);
}

Tensor scalar(int64_t value) { return Tensor::of_ints({}, {value}); }

using Reals = std::vector<double>;

TEST_CASE("a state is written at a position known when running") {
  const Graph graph = compile(
      "input pos: i32[]\ninput k: f32[head=2]\nstate cache: f32[key=3 head=2] ~ ones\n"
      "cache[key = pos] <- k * 10\noutput before = cache\n");
  const Tensor k = Tensor::of_reals({2}, {1, 2}, DType::f32);
  const auto result = run(graph, {{"pos", scalar(1)}, {"k", k}});
  CHECK(result.states.at("cache").reals == Reals{1, 1, 10, 20, 1, 1});
  CHECK(result.outputs[0].second.reals == Reals{1, 1, 1, 1, 1, 1});  // reads give the value at the start
  CHECK_THROWS_AS(run(graph, {{"pos", scalar(3)}, {"k", k}}), RuntimeFailure);
  CHECK_THROWS_AS(run(graph, {{"pos", scalar(-1)}, {"k", k}}), RuntimeFailure);
}

TEST_CASE("other ways to write a state") {
  struct Row {
    const char* statement;
    Reals expected;
  };
  const Row rows[] = {
      {"s[c = 1] <- v", {0, 7, 0, 0, 8, 0}},  // [r c], v: [r]
      {"s[c = -1] <- v", {0, 0, 7, 0, 0, 8}},
      {"s[r = 1, c = 2] <- 5", {0, 0, 0, 0, 0, 5}},
      {"s[c = 1:3] <- v", {0, 7, 7, 0, 8, 8}},  // broadcast over what the value lacks
      {"s[c = 0:2, r = 0] <- iota(c = 2) + 1", {1, 2, 0, 0, 0, 0}},
      {"s[c = i] <- v", {0, 0, 7, 8, 0, 0}},  // i: [r], aligned: a column for each row
      {"s[c = j] <- v", {7, 0, 7, 8, 0, 8}},  // j: [m], v broadcasts over m
      {"s[c = j] <- iota(m = 2) + 1", {2, 0, 1, 2, 0, 1}},
      {"s <- where(iota(c = 3) < 1, v, s)", {7, 0, 0, 8, 0, 0}},
  };
  for (const Row& row : rows) {
    CAPTURE(row.statement);
    const Graph graph = compile(std::string("input v: f32[r=2]\ninput i: i32[r=2]\ninput j: i32[m=2]\nstate s: f32[r=2 c=3] ~ zeros\n") +
                                row.statement + "\noutput o = v\n");
    const auto result =
        run(graph,
            {{"v", Tensor::of_reals({2}, {7, 8}, DType::f32)}, {"i", Tensor::of_ints({2}, {2, 0})}, {"j", Tensor::of_ints({2}, {2, 0})}});
    CHECK(result.states.at("s").reals == row.expected);
  }
}

TEST_CASE("random numbers have their moments, and each call its own stream") {
  const Graph graph = compile("dim n = 20000\noutput a = normal(n)\noutput b = normal(n)\noutput c = uniform(n)\n");
  const auto result = run(graph, {});
  const auto moments = [&](size_t output) {
    const Reals& x = result.outputs[output].second.reals;
    double sum = 0, squares = 0;
    for (double v : x) sum += v, squares += v * v;
    const double mean = sum / static_cast<double>(x.size());
    return std::pair(mean, squares / static_cast<double>(x.size()) - mean * mean);
  };
  CHECK(std::fabs(moments(0).first) < 0.03);
  CHECK(std::fabs(moments(0).second - 1) < 0.05);
  CHECK(std::fabs(moments(2).first - 0.5) < 0.01);
  CHECK(std::fabs(moments(2).second - 1.0 / 12) < 0.005);
  CHECK(result.outputs[0].second.reals != result.outputs[1].second.reals);
  CHECK(run(graph, {}).outputs[0].second.reals == result.outputs[0].second.reals);
  InterpretOptions later;
  later.step = 1;
  CHECK(run(graph, {}, later).outputs[0].second.reals != result.outputs[0].second.reals);
}

TEST_CASE("dropout acts in training only, and its gradient uses the same mask") {
  const Graph graph = compile("dim n = 4000\ninput x: f32[n]\ny = dropout(x, 0.25)\noutput y\noutput d = grad(sum(y), x)\n");
  const Tensor x = Tensor::of_reals({4000}, Reals(4000, 3.0), DType::f32);
  const auto trained = run(graph, {{"x", x}});
  const Reals &y = trained.outputs[0].second.reals, &d = trained.outputs[1].second.reals;
  int kept = 0;
  for (size_t k = 0; k < y.size(); ++k) {
    REQUIRE((y[k] == 0 || y[k] == doctest::Approx(4.0)));
    REQUIRE(d[k] == doctest::Approx(y[k] / 3));
    kept += y[k] != 0;
  }
  CHECK(kept > 2850);
  CHECK(kept < 3150);
  InterpretOptions inference;
  inference.mode = RunMode::inference;
  CHECK(run(graph, {{"x", x}}, inference).outputs[0].second.reals == x.reals);
}

TEST_CASE("initialisers") {
  const Graph graph = compile(
      "dim n = 50, m = 150, layers = 8\nfrozen param a: [n m] ~ normal(std = 0.02 / sqrt(2 * layers))\nfrozen param b: [n m] ~ "
      "xavier(fan_in = n)\n"
      "frozen param c: [n m] ~ xavier(fan_in = n, fan_out = m)\nfrozen param d: [n m] ~ trunc_normal(2, lo = -1, hi = 3)\nfrozen param e: "
      "[n m] ~ uniform(-n, n / 2)\n"
      "frozen param f: i32[n] ~ constant(n - 7)\nfrozen param g: [n] ~ constant(-2 / sqrt(n))\noutput o = a\n");
  const TensorMap params = initial_params(graph, {}, 3);
  const auto deviation = [&](const char* name) {
    double squares = 0;
    for (double v : params.at(name).reals) squares += v * v;
    return std::sqrt(squares / static_cast<double>(params.at(name).count()));
  };
  const auto within = [&](const char* name, double lo, double hi) {
    const Reals& x = params.at(name).reals;
    return *std::min_element(x.begin(), x.end()) >= lo && *std::max_element(x.begin(), x.end()) <= hi;
  };
  CHECK(deviation("a") == doctest::Approx(0.005).epsilon(0.03));
  CHECK(deviation("b") == doctest::Approx(0.98658 / std::sqrt(50)).epsilon(0.03));  // of a normal cut at three deviations
  CHECK(within("b", -3 / std::sqrt(50), 3 / std::sqrt(50)));
  CHECK(deviation("c") == doctest::Approx(std::sqrt(2.0 / 200)).epsilon(0.03));
  CHECK(within("c", -std::sqrt(6.0 / 200), std::sqrt(6.0 / 200)));
  CHECK(within("d", -1, 3));
  CHECK(within("e", -50, 25));
  CHECK(params.at("f").ints == std::vector<int64_t>(50, 43));
  CHECK(params.at("g").reals[0] == doctest::Approx(-2 / std::sqrt(50)));
}

TEST_CASE("positions in dims are checked once the dims have values") {
  const std::string text = "dim n = 4, k = 3\ninput x: f32[n]\noutput a = x[n = k]\noutput b = x[n = 1:k]\noutput c = top_k(x, n, k)\n";
  const Graph graph = compile(text);
  const auto result = run(graph, {{"x", Tensor::of_reals({4}, {5, 6, 7, 8}, DType::f32)}});
  CHECK(result.outputs[0].second.reals == Reals{8});
  CHECK(result.outputs[1].second.reals == Reals{6, 7});
  CHECK(result.outputs[2].second.reals == Reals{8, 7, 6});
  CHECK(errors(text, {{"k", 4}}).find("program.ein:3") != std::string::npos);  // the index
  CHECK(errors(text, {{"k", 4}}).find("program.ein:4") == std::string::npos);
  CHECK(errors(text, {{"k", 5}}).find("program.ein:5") != std::string::npos);  // top_k
  CHECK(errors(text, {{"k", 1}}).find("program.ein:4") != std::string::npos);  // an empty slice
}

TEST_CASE("a fn's axes are its own") {
  const Graph graph = compile(
      "input x: f32[rows=2 a=3]\nfn centre(x: [... c]) { return x - mean(x, c) }\nfn scaled(x: [... c], w: [c]) { return x * w * (1 / c) "
      "}\n"
      "output y = scaled(centre(x), x[rows = 0])\n");
  const auto result = run(graph, {{"x", Tensor::of_reals({2, 3}, {1, 2, 3, 6, 6, 9}, DType::f32)}});
  const Reals expected{-1.0 / 3, 0, 1, -1.0 / 3, -2.0 / 3, 2};
  for (size_t k = 0; k < 6; ++k) CHECK(result.outputs[0].second.reals[k] == doctest::Approx(expected[k]));
  CHECK(to_string(graph.type(graph.outputs[0].node)) == "f32[rows=2 a=3]");
}

}  // namespace
}  // namespace einc
