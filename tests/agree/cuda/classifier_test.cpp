// SPDX-License-Identifier: Apache-2.0
// The loss of a classifier and its gradient on the emulated GPU: one kernel over the logits, without a scatter between, and rows of the
// gradient that start at whole lines of memory whatever the number of classes is.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "runtime/base/failure.h"
#include "tests/support/run_cuda.h"

using namespace einc;

namespace {

const char* kClassifier = R"(
dim batch = 6, seq = 8, wide = 24, classes = 331
input x: f32[batch seq wide]
input label: i32[batch seq]
param w: [wide classes] ~ normal(std = 0.3)
logits = einsum(x, w, "batch seq wide, wide classes -> batch seq classes")
loss = mean(cross_entropy(logits, label, classes))
minimize loss using sgd(lr = 0.5)
)";

Graph trained(Policy policy) {
  return assign_precision(simplify(expand(compile_text(kClassifier), Roots::training), Roots::training), policy);
}

}  // namespace

TEST_CASE("cuda: a classifier's gradient is made with its loss") {
  for (const Policy policy : {Policy::f32, Policy::bf16}) {
    CAPTURE(policy == Policy::bf16);
    const Graph graph = trained(policy);
    const TensorMap inputs = some_inputs(graph, {}), params = initial_params(graph, {}, 1), states = initial_states(graph, {}, 1);
    const InterpretResult wanted = interpret(graph, {}, inputs, params, states);
    const CpuRun found = run_cuda(graph, {}, inputs, params, states, {}, Scheduling::all, {1});
    const double tolerance = policy == Policy::f32 ? 1e-5 : 2e-2;
    CHECK(found.loss->real_at(0) == doctest::Approx(wanted.loss->real_at(0)).epsilon(tolerance));
    const Tensor &gradient = found.gradients.at(Name("w")), &expected = wanted.gradients.at(Name("w"));
    double largest = 0;
    for (int64_t i = 0; i < expected.count(); ++i) largest = std::max(largest, std::abs(expected.real_at(i)));
    for (int64_t i = 0; i < expected.count(); ++i)
      CHECK(gradient.real_at(i) == doctest::Approx(expected.real_at(i)).epsilon(tolerance).scale(largest));
  }
}

TEST_CASE("cuda: a label beyond the classes is named") {
  const Graph graph = trained(Policy::f32);
  TensorMap inputs = some_inputs(graph, {});
  inputs.at(Name("label")).ints[13] = 331;
  CHECK_THROWS_WITH_AS(run_cuda(graph, {}, inputs, initial_params(graph, {}, 1), initial_states(graph, {}, 1)),
                       doctest::Contains("'label' at [1, 5] is 331"), RuntimeFailure);
}

TEST_CASE("cuda: a classifier's launches, and where its rows lie") {
  CudaOptions options;
  options.library.products = 1;
  const Graph graph = trained(Policy::bf16);
  const auto program = compile_for_cuda(graph, {}, options);
  const CudaExecutable& executable = program->executable;
  int padded = 0;
  int64_t place = -1;
  for (const ExecutableBuffer& buffer : executable.program.buffers) {
    if (buffer.role != BufferRole::arena || buffer.shape.size() != 3 || buffer.shape.back() < 331) continue;
    CHECK(buffer.shape.back() == 384);
    CHECK(buffer.padding == 53);
    CHECK(buffer.bytes == int64_t{6} * 8 * 384 * 2);
    CHECK((place < 0 || place == buffer.offset));  // the gradient lies where the logits lay
    place = buffer.offset;
    ++padded;
  }
  CHECK(padded == 2);  // logits and their gradient, both bf16
  for (const GraphKernel& k : program->list.kernels)
    CHECK(std::ranges::none_of(k.kernel->stages, [](const Stage& stage) { return stage.ordered; }));
  for (const CudaCall& call : executable.calls)
    if (call.gemm) CHECK(call.gemm->left.leading * 2 % 16 == 0);
}
