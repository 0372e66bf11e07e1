// SPDX-License-Identifier: Apache-2.0
// Products with epilogues on the GPU of the tests against the interpreter: which launches one product takes with it, and the values when it
// does. Where an epilogue cannot be, the launches stay apart.
#include <doctest/doctest.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "compiler/library/map_gemm.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cuda.h"
#include "tests/support/run_graph.h"

using namespace einc;

namespace {

double tolerance_of(Policy policy) {
  switch (policy) {
    case Policy::inherit:
    case Policy::f32:
    case Policy::tf32:
      return 4e-6;  // 2.3e-6 in cuBLASLt's GELU on an H200
    case Policy::f16:
      return 2e-3;
    case Policy::bf16:
      return 1.5e-2;
    case Policy::fp8:
      return 0.1;
  }
  return 0;
}

struct Program {
  const char* text;
  RunMode mode = RunMode::training;
  Bindings dims{};
};

// The epilogues that the program's products may have.
std::string epilogues_of(const Program& program, Policy policy) {
  const Roots roots = program.mode == RunMode::training ? Roots::training : Roots::inference;
  const Graph graph = assign_precision(simplify(expand(compile_text(program.text, program.dims), roots), roots), policy);
  const TensorMap inputs = some_inputs(graph, program.dims), params = initial_params(graph, program.dims, 1),
                  states = initial_states(graph, program.dims, 1);
  InterpretOptions options;
  options.mode = program.mode;
  options.arithmetic = Arithmetic::stored;
  const InterpretResult wanted = interpret(graph, program.dims, inputs, params, states, options);
  const CpuRun found = run_cuda(graph, program.dims, inputs, params, states, options, Scheduling::all, {1});
  for (const auto& [name, output] : found.outputs)
    for (const auto& [other, expected] : wanted.outputs)
      if (name == other) CHECK_MESSAGE(distance(output, expected) < tolerance_of(policy), name.str());
  for (const auto& [name, gradient] : found.gradients)
    CHECK_MESSAGE(distance(gradient, wanted.gradients.at(name)) < 2 * tolerance_of(policy), name.str());
  CudaOptions cuda;
  cuda.mode = program.mode;
  cuda.library.products = 1;
  std::vector<std::string> epilogues;
  const auto text = compile_for_cuda(graph, program.dims, cuda);
  for (const CudaFusedProduct& fused : text->executable.fused) epilogues.push_back(describe(fused.gemm.epilogue));
  std::ranges::sort(epilogues);
  return fmt::format("{}", fmt::join(epilogues, "; "));
}

constexpr Policy kAll[] = {Policy::f32, Policy::bf16, Policy::f16};

const char* const kInputs = R"(
dim rows = 24, wide = 32, deep = 16
input x: [rows deep]
param w: [deep wide] ~ normal(std = 0.3)
param b: [wide] ~ normal
)";

std::string with_inputs(const char* rest) { return std::string(kInputs) + rest; }

}  // namespace

TEST_CASE("a bias is added by the product") {
  const std::string text = with_inputs("output y = einsum(x, w, \"rows deep, deep wide -> rows wide\") + b\n");
  for (const Policy policy : kAll) {
    CAPTURE(static_cast<int>(policy));
    CHECK(epilogues_of({text.c_str()}, policy) == "plus a bias");
  }
}

TEST_CASE("a bias of several axes, and rows of several") {
  const char* text = R"(
input x: [batch=3 seq=8 deep=16]
param w: [deep three=3 head=8] ~ normal(std = 0.3)
param b: [three head] ~ normal
output y = einsum(x, w, "batch seq deep, deep three head -> batch seq three head") + b
)";
  for (const Policy policy : kAll) {
    CAPTURE(static_cast<int>(policy));
    CHECK(epilogues_of({text}, policy) == "plus a bias");
  }
}

TEST_CASE("queries, keys and values lie as their product does, whose epilogue adds the bias") {
  const char* text = R"(
input x: [batch=2 seq=32 deep=32]
param w: [deep three=3 heads=2 head=16] ~ normal(std = 0.2)
param b: [three heads head] ~ normal
qkv = einsum(x, w, "batch seq deep, deep three heads head -> three batch heads seq head") + b
q = qkv[three = 0]
k: [batch heads key head] = qkv[three = 1]
v: [batch heads key head] = qkv[three = 2]
scores = einsum(q, k, "batch heads seq head, batch heads key head -> batch heads seq key") * 0.25
output y = einsum(softmax(scores, key), v, "batch heads seq key, batch heads key head -> batch seq heads head")
)";
  for (const Policy policy : kAll) {
    CAPTURE(static_cast<int>(policy));
    CHECK(epilogues_of({text}, policy) == "plus a bias");
  }
}

TEST_CASE("a bias of the rows, or a scaled one, is added apart") {
  const char* of_rows = R"(
input x: [rows=24 deep=16]
param w: [deep wide=32] ~ normal
param b: [rows] ~ normal
output y = einsum(x, w, "rows deep, deep wide -> rows wide") + b
)";
  CHECK(epilogues_of({of_rows}, Policy::f32).empty());
  const std::string scaled = with_inputs("output y = einsum(x, w, \"rows deep, deep wide -> rows wide\") + 2 * b\n");
  CHECK(epilogues_of({scaled.c_str()}, Policy::f32).empty());
}

TEST_CASE("GELU in its tanh form belongs to the product, in its exact form it does not") {
  const std::string text = with_inputs("output y = gelu_tanh(einsum(x, w, \"rows deep, deep wide -> rows wide\") + b)\n"),
                    bare = with_inputs("output y = gelu_tanh(einsum(x, w, \"rows deep, deep wide -> rows wide\"))\n"),
                    exact = with_inputs("output y = gelu(einsum(x, w, \"rows deep, deep wide -> rows wide\") + b)\n");
  for (const Policy policy : kAll) {
    CAPTURE(static_cast<int>(policy));
    CHECK(epilogues_of({text.c_str()}, policy) == "plus a bias, GELU");
    CHECK(epilogues_of({bare.c_str()}, policy) == "GELU");
    CHECK(epilogues_of({exact.c_str()}, policy).empty());
  }
}

TEST_CASE("a matrix is added by the product") {
  const char* square = R"(
input x: [rows=24 wide=32]
param w: [wide out=32] ~ normal(std = 0.2)
param b: [out] ~ normal
z: [rows out] = x
output y = z + einsum(x, w, "rows wide, wide out -> rows out")
)";
  const char* with_bias = R"(
input x: [rows=24 wide=32]
param w: [wide out=32] ~ normal(std = 0.2)
param b: [out] ~ normal
z: [rows out] = x
output y = z + (einsum(x, w, "rows wide, wide out -> rows out") + b)
)";
  CHECK(epilogues_of({square}, Policy::f32) == "plus a matrix");
  CHECK(epilogues_of({with_bias}, Policy::f32) == "plus a bias, plus a matrix");
}

TEST_CASE("a sum over microbatches lies where its product adds to it") {
  const std::string text = with_inputs(R"(
state s: [deep wide] ~ normal(std = 0.3)
input d: [rows wide]
s <- s + einsum(x, d, "rows deep, rows wide -> deep wide")
output y = x * 2
)");
  Graph graph = assign_precision(simplify(expand(compile_text(text, {}), Roots::training), Roots::training), Policy::f32);
  for (Node& node : graph.nodes)
    if (auto* state = std::get_if<StateAttr>(&node.attr)) state->role = StateRole::sum;
  const TensorMap inputs = some_inputs(graph, {}), params = initial_params(graph, {}, 1), states = initial_states(graph, {}, 1);
  InterpretOptions options;
  options.mode = RunMode::inference;
  options.arithmetic = Arithmetic::stored;
  const InterpretResult wanted = interpret(graph, {}, inputs, params, states, options);
  CudaOptions cuda;
  cuda.mode = RunMode::inference;
  cuda.library.products = 1;
  const auto compiled = compile_for_cuda(graph, {}, cuda);
  REQUIRE(compiled->executable.fused.size() == 1);
  const LibraryProduct& product = compiled->executable.fused[0].gemm;
  CHECK(describe(product.epilogue) == "plus a matrix");
  CHECK(product.epilogue.addend == product.result.buffer);
  CHECK(compiled->executable.program.copies.empty());
  const CpuRun found = run_cuda(graph, {}, inputs, params, states, options, Scheduling::all, {1});
  REQUIRE(found.states.size() == 1);
  CHECK(distance(found.states.begin()->second, wanted.states.begin()->second) < tolerance_of(Policy::f32));
}

namespace {

const char* const kPerceptron = R"(
dim rows = 256, wide = 136, deep = 16, classes = 16
input x: [rows deep]
input label: i32[rows]
param w1: [deep wide] ~ normal(std = 0.3)
param b1: [wide] ~ normal(std = 0.3)
param w2: [wide classes] ~ normal(std = 0.3)
param b2: [classes] ~ normal
h = gelu_tanh(einsum(x, w1, "rows deep, deep wide -> rows wide") + b1)
output logits = einsum(h, w2, "rows wide, wide classes -> rows classes") + b2
loss = mean(cross_entropy(logits, label, classes))
minimize loss using adamw(lr = 0.01, clip_norm = 1.0)
)";

}  // namespace

TEST_CASE("a training step: GELU keeps its input, its slope is the product's that comes back, biases' gradients are sums") {
  const std::string sums = "with the sums of the right operand's columns";
  for (const Policy policy : {Policy::bf16, Policy::f16})
    CHECK(epilogues_of({kPerceptron}, policy) == "plus a bias, GELU, its input kept; times the slope of GELU; " + sums);
  // In f32 the product is what is kept, and the backward adds the bias again.
  CHECK(epilogues_of({kPerceptron}, Policy::f32) == sums + "; " + sums);
}

TEST_CASE("rows of GELU's input that are no multiples of 8 long stay apart") {
  CHECK(epilogues_of({kPerceptron, RunMode::training, {{"wide", 132}}}, Policy::bf16) == "with the sums of the right operand's columns");
}

TEST_CASE("what somebody else reads of a product is stored") {
  const std::string text = with_inputs(R"(
p = einsum(x, w, "rows deep, deep wide -> rows wide")
output y = p + b
output z = p * 2
)");
  CHECK(epilogues_of({text.c_str()}, Policy::f32).empty());
}

TEST_CASE("fp8: what becomes of a product beside its scale") {
  const char* text = R"(
input x: [rows=32 deep=16]
param w: [deep wide=32] ~ normal(std = 0.3)
param b: [wide] ~ normal
output y = einsum(x, w, "rows deep, deep wide -> rows wide") + b
)";
  CHECK(epilogues_of({text, RunMode::inference}, Policy::fp8) == "plus a bias");
}
