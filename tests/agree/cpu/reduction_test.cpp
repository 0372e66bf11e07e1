// SPDX-License-Identifier: Apache-2.0
// Reductions over whole tensors: threads share them, and what they do changes no bit.
#include <doctest/doctest.h>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cpu.h"

using namespace einc;

namespace {

struct ReductionCase {
  const char* program;
  Bindings dims;
};

const ReductionCase kDivided[] = {
    {"dim a, b\ninput x: f32[a b]\noutput y = sum(x^2)\n", {{"a", 331}, {"b", 257}}},
    {"dim a, b\ninput x: f32[a b]\ninput z: f32[b a]\noutput y = sum(x * x) + 3 * sum(z * z)\n", {{"a", 300}, {"b", 700}}},
    {"dim a\ninput x: f64[a]\noutput y = mean(x)\n", {{"a", 200000}}},
    {"dim a, b\ninput x: f32[a b]\noutput y = sum(exp(x), b)\n", {{"a", 3}, {"b", 90000}}},
    {"dim a, b\ninput x: f32[a b]\noutput y = max(x) - min(x)\n", {{"a", 999}, {"b", 100}}},
    {"dim a, b\ninput x: f32[a b]\noutput y = mean((x - mean(x))^2)\n", {{"a", 512}, {"b", 300}}},
    {"dim a\ninput x: f32[a]\noutput y = logsumexp(x, a)\n", {{"a", 131072}}},
    {"dim a\ninput x: f32[a]\noutput y = sum(softmax(x, a) * x)\n", {{"a", 131072}}},
    {"dim a, b, c\ninput x: f32[a b c]\noutput y = einsum(x, x, \"a b c, a b c -> \")\n", {{"a", 7}, {"b", 130}, {"c", 101}}},
    {"dim a, b, k\ninput x: f32[k a]\ninput z: f32[k b]\noutput y = einsum(x, z, \"k a, k b -> a b\") * 3\n",
     {{"a", 20}, {"b", 18}, {"k", 12000}}},
    {"dim a, b, c\ninput x: f32[a c]\ninput z: f32[b c]\noutput y = sum(((x - z): [a c b])^2, c)\n", {{"a", 33}, {"b", 17}, {"c", 63}}},
    {"dim a, b, c\ninput x: f32[a c]\ninput z: f32[c b]\noutput y = max(abs((x - z): [a c b]), c)\n", {{"a", 33}, {"b", 17}, {"c", 65}}},
};

CpuProgram compiled(const Graph& graph, const Bindings& dims) {
  CpuOptions options;
  options.mode = RunMode::inference;
  options.cache.clear();
  return {graph, dims, options};
}

// 16 threads at least could share what is reduced; what products are worth that is more.
void check_divided(const Kernel& kernel) {
  const bool product = kernel.contraction && !kernel.contraction->rows.empty() && !kernel.contraction->columns.empty();
  const int64_t points = trips(kernel, bits(kernel.outer));
  if (points >= (product ? 1024 : 16)) return;
  for (const Stage& stage : kernel.stages)
    CHECK((stage.reductions.empty() || points * trips(kernel, bits(stage.axes)) <= (product ? 1 << 22 : 65536)));
}

std::vector<double> values_on(int threads, const CpuProgram& program, const TensorMap& inputs) {
  const CpuRun run = run_program(program.program(), program.functions(), inputs, {}, {}, {}, threads);
  return run.outputs.at(0).second.reals;
}

}  // namespace

TEST_CASE("reductions: of whole tensors, on any number of threads") {
  for (const ReductionCase& test : kDivided) {
    const std::string program_text = test.program;
    CAPTURE(program_text);
    const Graph graph =
        assign_precision(simplify(expand(compile_text(test.program, test.dims), Roots::inference), Roots::inference), Policy::inherit);
    const TensorMap inputs = some_inputs(graph, test.dims);
    const CpuProgram program = compiled(graph, test.dims);
    for (const GraphKernel& k : program.lowered().list.kernels) check_divided(*k.kernel);
    const std::vector<double> wanted = interpret(graph, test.dims, inputs, {}, {}).outputs.at(0).second.reals;
    const std::vector<double> one = values_on(1, program, inputs);
    REQUIRE(one.size() == wanted.size());
    for (size_t i = 0; i < one.size(); ++i) CHECK(one[i] == doctest::Approx(wanted[i]).epsilon(2e-6).scale(100));
    for (int threads : {2, 3, 8}) CHECK(values_on(threads, program, inputs) == one);
  }
}

// Rows of less than a cache line, of one vector and of several; tables that a cache holds and larger ones, whose rows are fetched ahead.
TEST_CASE("reductions: segments are folded in one order, whatever the number of threads") {
  struct Row {
    int64_t width, nodes;
    bool owned;
  };
  for (const Row row :
       {Row{5, 13, false}, Row{37, 13, true}, Row{37, 5000, true}, Row{130, 1, false}, Row{130, 1500, true}, Row{300, 13, true}})
    for (const char* folded : {"segment_sum(exp(v), ids, nodes)", "segment_max(v, ids, nodes)", "segment_min(v, at % nodes, nodes)"}) {
      CAPTURE(row.width);
      CAPTURE(row.nodes);
      const std::string text = fmt::format(
          "dim edges = 1500, nodes = {}, width = {}\ninput v: f32[edges width]\ninput at: i32[edges]\n"
          "output ids = (at * 9 + iota(edges) * 7) % nodes\noutput y = max({}, -3)\n",
          row.nodes, row.width, folded);
      const Graph graph = assign_precision(simplify(expand(compile_text(text, {}), Roots::inference), Roots::inference), Policy::inherit);
      const TensorMap inputs = some_inputs(graph, {});
      const CpuProgram program = compiled(graph, {});
      const auto owned =
          std::ranges::count_if(program.lowered().lowered.functions, [](const PlannedKernel& f) { return f.plan.owns_rows; });
      CHECK(owned == (row.owned ? 1 : 0));
      const auto values = [&](int threads) {
        Executor executor(program.program(), program.functions(), threads);
        return run_on(executor, program.program(), inputs, {}, {}, {}).outputs.at(1).second.reals;
      };
      const std::vector<double> one = values(1), wanted = interpret(graph, {}, inputs, {}, {}).outputs.at(1).second.reals;
      for (size_t i = 0; i < one.size(); ++i)
        if (one[i] != wanted[i]) REQUIRE(one[i] == doctest::Approx(wanted[i]).epsilon(1e-5));
      for (int threads : {2, 3, 8}) CHECK(values(threads) == one);
    }
}

TEST_CASE("reductions: sums of several tensors run along each one's elements as they lie") {
  const char* text =
      "dim a, b\ninput x: f32[a b]\ninput z: f32[b a]\ninput u: f32[b 3 a]\ninput v: f32[a]\ninput p: f32[a b]\ninput q: f32[b a]\n"
      "output y = sum(x^2) + max(exp(z)) + sum(abs(u)) + sum(v) + sum(rearrange(p, \"a b -> b a\") * q)\n";
  const Bindings dims{{"a", 48}, {"b", 31}};
  const Graph graph = assign_precision(simplify(expand(compile_text(text, dims), Roots::inference), Roots::inference), Policy::inherit);
  const TensorMap inputs = some_inputs(graph, dims);
  const CpuProgram program = compiled(graph, dims);
  int along = 0, across = 0;
  for (const GraphKernel& k : program.lowered().list.kernels)
    for (const Scalar& v : k.kernel->values)
      if (v.kind == ScalarKind::load && !v.index.affine.is_constant())
        ++(v.index.affine.terms.size() == 1 && v.index.affine.terms[0].coefficient == 1 ? along : across);
  CHECK(along >= 4);
  CHECK(across <= 2);  // of the product of two layouts
  const std::vector<double> wanted = interpret(graph, dims, inputs, {}, {}).outputs.at(0).second.reals, one = values_on(1, program, inputs);
  CHECK(one[0] == doctest::Approx(wanted[0]).epsilon(2e-6).scale(100));
  CHECK(values_on(3, program, inputs) == one);
}

TEST_CASE("reductions: a tensor whose size has no divisor is reduced in one piece") {
  const char* text = "dim a\ninput x: f32[a]\noutput y = sum(x)\n";
  const Bindings dims{{"a", 131071}};
  const Graph graph = assign_precision(simplify(expand(compile_text(text, dims), Roots::inference), Roots::inference), Policy::inherit);
  const CpuProgram program = compiled(graph, dims);
  CHECK(program.program().launches.size() == 1);
  const TensorMap inputs = some_inputs(graph, dims);
  CHECK(values_on(1, program, inputs)[0] ==
        doctest::Approx(interpret(graph, dims, inputs, {}, {}).outputs.at(0).second.reals[0]).epsilon(1e-4));
}
