// SPDX-License-Identifier: Apache-2.0
// Launches of one function that run as one on the emulated GPU: the updates of params of one shape, with the interpreter's results; and
// launches that something in between forbids.
#include <doctest/doctest.h>

#include "compiler/codegen/cuda/join_launches.h"
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

// Launches of one function: each reads the first of its buffers and writes the second.
CudaExecutable launches_of(const std::vector<std::pair<uint32_t, uint32_t>>& buffers, BufferRole role) {
  CudaExecutable executable;
  executable.program.functions = {"k0"};
  for (int64_t b = 0; b < 6; ++b)
    executable.program.buffers.push_back({b < 3 ? BufferRole::arena : role, "", DType::f32, {16}, 64, 64 * b, InitKind::zeros});
  for (const auto& [in, out] : buffers) {
    Launch launch;
    launch.buffers = {in, out};
    executable.program.launches.push_back(launch);
    executable.calls.emplace_back();
  }
  join_launches(executable, std::vector<WrittenBuffers>(buffers.size(), {false, true}));
  return executable;
}

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

TEST_CASE("launches join where nothing in between forbids it") {
  const auto together = [](const std::vector<std::pair<uint32_t, uint32_t>>& buffers, BufferRole role) {
    return launches_of(buffers, role).calls[0].together;
  };
  CHECK(together({{0, 3}, {1, 4}, {2, 5}}, BufferRole::arena) == std::vector<uint32_t>{1, 2});
  CHECK(together({{0, 3}, {3, 4}}, BufferRole::arena).empty());          // reads what the first makes
  CHECK(together({{0, 3}, {1, 0}}, BufferRole::arena).empty());          // writes what the first reads
  CHECK(together({{0, 3}, {1, 3}}, BufferRole::arena).empty());          // writes what the first writes
  CHECK(together({{0, 3}, {3, 1}, {1, 4}}, BufferRole::arena).empty());  // one in between makes what it reads
  CHECK(together({{0, 1}, {2, 4}}, BufferRole::param).empty());          // an update never runs before what may forbid it
  CHECK(together({{0, 3}, {1, 4}}, BufferRole::param) == std::vector<uint32_t>{1});
}
