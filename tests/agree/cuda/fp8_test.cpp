// SPDX-License-Identifier: Apache-2.0
// Training in fp8 on the emulated GPU, its products by cuBLASLt, against the interpreter: results and gradients, the maxima that scale
// the next run, and what the plan does: every product of whole 16s is the library's, an operand that is contracted along two axes is cast
// once, in both orientations.
#include <doctest/doctest.h>

#include <fmt/format.h>

#include <cmath>
#include <map>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cuda.h"

using namespace einc;

namespace {

Graph trained(const Graph& elaborated) {
  return assign_precision(simplify(expand(elaborated, Roots::training), Roots::training), Policy::fp8, Fp8Scaling::delayed);
}

const char* kFp8Perceptron = R"(
dim batch = 32, seq = 16, wide = 64, hidden = 128, classes = 32
input x: f32[batch seq wide]
input label: i32[batch seq]
param w1: [wide hidden] ~ normal(std = 0.2)
param b1: [hidden] ~ zeros
param w2: [hidden classes] ~ normal(std = 0.2)
h = gelu(einsum(x, w1, "batch seq wide, wide hidden -> batch seq hidden") + b1)
output logits = einsum(h, w2, "batch seq hidden, hidden classes -> batch seq classes")
loss = mean(cross_entropy(logits, label, classes))
minimize loss using adamw(lr = 0.01)
)";

void check_agrees(const Graph& graph, const Bindings& dims, double tolerance) {
  const TensorMap inputs = some_inputs(graph, dims), params = initial_params(graph, dims, 1);
  TensorMap states = initial_states(graph, dims, 1);
  for (int step = 0; step < 3; ++step) {  // the first scales by 1, later ones by the maxima of the run before
    InterpretOptions options;
    options.arithmetic = Arithmetic::stored;
    const InterpretResult wanted = interpret(graph, dims, inputs, params, states, options);
    const CpuRun found = run_cuda(graph, dims, inputs, params, states, {}, Scheduling::all, {1});
    CAPTURE(step);
    CHECK(distance(*found.loss, *wanted.loss) < tolerance);
    for (const auto& [name, output] : found.outputs)
      for (const auto& [other, expected] : wanted.outputs)
        if (name == other) CHECK(distance(output, expected) < tolerance);
    for (const auto& [name, gradient] : found.gradients) {
      CAPTURE(name.str());
      CHECK(distance(gradient, wanted.gradients.at(name)) < tolerance);
    }
    for (const auto& [name, value] : wanted.states) {
      if (name.str().find("amax") == std::string::npos) continue;
      CAPTURE(name.str());
      CHECK(distance(found.states.at(name), value) < tolerance);
      states[name] = value;
    }
  }
}

struct Launches {
  int library = 0, own = 0, transposing = 0;
};

Launches counts_of(const Graph& graph, const Bindings& dims) {
  CudaOptions options;
  options.library.products = 1;
  const auto program = compile_for_cuda(graph, dims, options);
  Launches counts;
  for (size_t i = 0; i < program->executable.calls.size(); ++i) {
    const auto& gemm = program->executable.calls[i].gemm;
    const Kernel& kernel = *program->list.kernels[i].kernel;
    if (gemm && gemm->scale && bytes_of(gemm->left.dtype) == 1)
      ++counts.library;
    else if (kernel.contraction && !kernel.contraction->rows.empty() && !kernel.contraction->columns.empty())
      ++counts.own;
  }
  for (const std::string& text : program->executable.texts)
    if (text.find("tile0_") != std::string::npos) ++counts.transposing;
  return counts;
}

// What fp8 values are made of.
struct Narrowed {
  int wide = 0;    // values in memory in full precision though nothing reads them but what narrows them
  int turned = 0;  // copies of an fp8 value in another order
};

Narrowed narrowed(const Graph& graph, const Bindings& dims, const Scheduling& scheduling) {
  CudaOptions options;
  options.library.products = 1;
  options.scheduling = scheduling;
  const auto program = compile_for_cuda(graph, dims, options);
  const BoundGraph& bound = program->bound;
  std::map<uint32_t, bool> only_narrowed;  // what is divided by a scale
  Narrowed found;
  for (const Node& node : bound.graph.nodes)
    for (const NodeId x : node.operands) {
      const Node& given = bound[x];
      found.turned += node.op == Op::cast && bytes_of(node.type.dtype) == 1 && given.type.dtype == node.type.dtype;
      const bool narrows =
          node.op == Op::map && node.type.rank() > 0 && given.type.rank() > 0 && node.reason.str().find("scale") != std::string::npos;
      const auto [at, fresh] = only_narrowed.try_emplace(x.index, narrows);
      if (!fresh) at->second = at->second && narrows;
    }
  for (const auto& [id, only] : only_narrowed)
    found.wide += only && program->list.in_memory[id] && bound.graph.nodes[id].type.dtype == DType::f32;
  return found;
}

}  // namespace

TEST_CASE("cuda: fp8 training") {
  const Graph graph = trained(compile_text(kFp8Perceptron));
  check_agrees(graph, {}, 2e-2);
  // Two forward; two weight gradients and one of what lies between backward.
  const Launches counts = counts_of(graph, {});
  CHECK(counts.library == 5);
  CHECK(counts.own == 0);
}

TEST_CASE("cuda: fp8 where sizes are no multiples of 16") {
  std::string text = kFp8Perceptron;
  text.replace(text.find("classes = 32"), 12, "classes = 10");
  const Graph graph = trained(compile_text(text));
  check_agrees(graph, {}, 2e-2);
  CHECK(counts_of(graph, {}).library == 2);
}

TEST_CASE("cuda: fp8 casts of large values transpose through shared memory, with their maximum") {
  const Bindings dims{{"batch", 128}, {"seq", 16}, {"wide", 48}, {"hidden", 96}, {"classes", 32}};
  const Graph graph = trained(compile_text(kFp8Perceptron, dims));
  CHECK(counts_of(graph, dims).transposing >= 2);
  check_agrees(graph, dims, 2e-2);
}

TEST_CASE("cuda: GPT-2 in fp8") {
  const Bindings dims{{"batch", 2}, {"seq", 32}, {"vocab", 48}, {"layers", 1}, {"heads", 2}, {"head", 16}};
  const Graph graph = trained(compile_example("gpt2.ein", dims));
  check_agrees(graph, dims, 4e-2);
  const Launches counts = counts_of(graph, dims);
  // Of a block 4 products of weights, and the logits; backward twice as many. Attention's are one kernel of bf16.
  CHECK(counts.library == 15);
  CHECK(counts.own == 0);
  // Norms, the loss and the norms' gradients: their kernels find the maxima, and the other order is made of the fp8 value.
  const Narrowed rows = narrowed(graph, dims, Scheduling::all), apart = narrowed(graph, dims, Scheduling().and_without("row_maxima"));
  CHECK(rows.wide == 0);
  CHECK(rows.turned == 6);
  CHECK(apart.wide == 4);
}

TEST_CASE("cuda: fp8 values that a program widens and multiplies are the library's as they are") {
  const char* text = R"(
dim m = 32, n = 48, k = 64
input a: {}[m k]
input b: {}[n k]
output y: {}[m n] = cast(einsum(cast(a, f32), cast(b, f32), "m k, n k -> m n"), {})
)";
  struct Case {
    const char *left, *right, *result;
    bool for_library;
  };
  // Of two e5m2 it has no product.
  for (const Case& c : {Case{"f8e4m3", "f8e4m3", "bf16", true}, Case{"f8e4m3", "f8e5m2", "f32", true},
                        Case{"f8e5m2", "f8e4m3", "f16", true}, Case{"f8e5m2", "f8e5m2", "bf16", false}}) {
    const std::string program_text = fmt::format(fmt::runtime(text), c.left, c.right, c.result, c.result);
    CAPTURE(program_text);
    const Graph graph = simplify(expand(compile_text(program_text), Roots::training), Roots::training);
    CudaOptions cuda;
    cuda.library.products = 1;
    const auto program = compile_for_cuda(graph, {}, cuda);
    const auto& calls = program->executable.calls;
    CHECK((calls.size() == 1 && calls[0].gemm && calls[0].gemm->left.dtype != DType::f32) == c.for_library);
    InterpretOptions options;
    options.arithmetic = Arithmetic::stored;
    const TensorMap inputs = some_inputs(graph, {});
    const InterpretResult wanted = interpret(graph, {}, inputs, {}, {}, options);
    const CpuRun found = run_cuda(graph, {}, inputs, {}, {}, {}, Scheduling::all, {1});
    CHECK(distance(found.outputs[0].second, wanted.outputs[0].second) < 1e-3);
  }
}

TEST_CASE("cuda: widened fp8 values that are read otherwise, too, still are") {
  const Graph graph = simplify(expand(compile_text(R"(
dim m = 32, n = 48, k = 64
input a: f8e4m3[m k]
input b: f8e4m3[n k]
wide = cast(a, f32)
sums = einsum(wide, cast(b, f32), "m k, n k -> m n")
output y = cast(sums, bf16)
output largest = max(sums, n)
output doubled = wide + wide
)"),
                                      Roots::training),
                               Roots::training);
  const TensorMap inputs = some_inputs(graph, {});
  InterpretOptions options;
  options.arithmetic = Arithmetic::stored;
  const InterpretResult wanted = interpret(graph, {}, inputs, {}, {}, options);
  const CpuRun found = run_cuda(graph, {}, inputs, {}, {}, {}, Scheduling::all, {1});
  REQUIRE(found.outputs.size() == 3);
  for (size_t i = 0; i < found.outputs.size(); ++i) CHECK(distance(found.outputs[i].second, wanted.outputs[i].second) < 1e-3);
}
