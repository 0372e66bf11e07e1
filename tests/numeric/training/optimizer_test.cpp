// SPDX-License-Identifier: Apache-2.0
// Ten steps of every optimizer, with its options, schedules, decay and clipping, step by step against PyTorch's numbers
// (reference.txt, written by make_reference.py): before and after simplification.
#include <doctest/doctest.h>

#include <fstream>
#include <sstream>

#include "compiler/elaborate/elaborate.h"
#include "compiler/ir/interpret.h"
#include "compiler/simplify/simplify.h"
#include "dsl/render.h"

using namespace einc;

namespace {

const std::string kModel =
    "dim n = 3, k = 2\ninput x: f64[n]\nparam w: f64[n k] ~ zeros\nparam b: f64[k] ~ zeros\n"
    "y = einsum(x, w, \"n, n k -> k\") + b\nloss = mean(y^2) + sum(sin(w))\nminimize loss using ";

// The params after each of ten steps.
std::vector<double> ten_steps(const Graph& graph) {
  const TensorMap inputs{{Name("x"), Tensor::of_reals({3}, {1, -2, 0.5}, DType::f64)}};
  TensorMap params{{Name("w"), Tensor::of_reals({3, 2}, {0.5, -0.3, 0.1, 0.7, -0.2, 0.4}, DType::f64)},
                   {Name("b"), Tensor::of_reals({2}, {0.05, -0.1}, DType::f64)}};
  TensorMap states = initial_states(graph, {}, 0);
  std::vector<double> values;
  for (int t = 0; t < 10; ++t) {
    const InterpretResult result = interpret(graph, {}, inputs, params, states);
    for (const auto& [name, value] : result.params) params[name] = value;
    for (const auto& [name, value] : result.states) states[name] = value;
    for (const char* name : {"w", "b"}) values.insert(values.end(), params[name].reals.begin(), params[name].reals.end());
  }
  return values;
}

void check(const std::vector<double>& got, const std::vector<double>& want) {
  REQUIRE(got.size() == want.size());
  for (size_t i = 0; i < got.size(); ++i) CHECK(got[i] == doctest::Approx(want[i]).epsilon(1e-9));
}

}  // namespace

TEST_CASE("optimizers agree with PyTorch") {
  std::ifstream file(EINC_SOURCE_DIR "/tests/numeric/training/reference.txt");
  std::string line;
  int cases = 0;
  while (std::getline(file, line)) {
    const size_t colon = line.find(" : ");
    const std::string optimizer = line.substr(0, colon);
    CAPTURE(optimizer);
    std::istringstream numbers(line.substr(colon + 3));
    std::vector<double> want;
    for (double value = 0; numbers >> value;) want.push_back(value);
    SourceMap sources;
    Diagnostics diagnostics;
    const auto id = sources.add("model.ein", kModel + optimizer, diagnostics);
    const auto graph = elaborate(sources, *id, {}, diagnostics);
    REQUIRE_MESSAGE(graph, render_text(sources, diagnostics));
    check(ten_steps(*graph), want);
    check(ten_steps(simplify(*graph, Roots::training)), want);
    ++cases;
  }
  CHECK(cases == 22);
}
