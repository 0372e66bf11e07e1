// SPDX-License-Identifier: Apache-2.0
// Launches of one kernel that run as one on the emulated GPU: the updates of params of one shape, with the interpreter's results.
#include <doctest/doctest.h>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cuda.h"

using namespace einc;

namespace {

const char* kLayers = R"(
dim batch = 8, wide = 12, layers = 5
input x: f32[batch wide]
fn layer(x: [batch wide]) {
  param w: [wide out=wide] ~ normal(std = 0.4)
  param b: [out=wide] ~ zeros
  y: [batch wide] = tanh(einsum(x, w, "batch wide, wide out -> batch out") + b)
  return y
}
for l in layers { x = layer(x) as h }
loss = mean(x * x)
minimize loss using adamw(lr = 0.01, clip_norm = 1.0)
)";

Graph trained() { return assign_precision(simplify(expand(compile_text(kLayers), Roots::training), Roots::training), Policy::f32); }

}  // namespace

TEST_CASE("cuda: the updates of params of one shape are one launch") {
  const Graph graph = trained();
  const auto program = compile_for_cuda(graph, {}, {});
  int largest = 0;
  for (const CudaCall& call : program->executable.calls) largest = std::max(largest, static_cast<int>(call.together.size()) + 1);
  CHECK(largest == 5);
  const TensorMap inputs = some_inputs(graph, {}), params = initial_params(graph, {}, 1), states = initial_states(graph, {}, 1);
  const InterpretResult wanted = interpret(graph, {}, inputs, params, states);
  const CpuRun found = run_cuda(graph, {}, inputs, params, states);
  for (const auto& [name, value] : wanted.params) {
    CAPTURE(name.str());
    for (int64_t i = 0; i < value.count(); ++i) CHECK(found.params.at(name).real_at(i) == doctest::Approx(value.real_at(i)).epsilon(1e-4));
  }
}
