// SPDX-License-Identifier: Apache-2.0
// What a stage computes along a row is kept for the stages after it where that pays, and nowhere else; the values stay the same.
#include <doctest/doctest.h>

#include <algorithm>

#include "compiler/lower/keep_rows.h"
#include "compiler/lower/kernel_work.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cpu.h"

using namespace einc;

namespace {

struct KeptRowsCase {
  const char* what;
  const char* program;
  Bindings dims;
  int64_t row_bytes;    // of all rows that kernels keep
  int64_t elementwise;  // FLOPs as executed
};

// exp, its argument and the product with the sum's reciprocal per element, that reciprocal per row.
constexpr int64_t kSoftmax = 3;

const KeptRowsCase kCases[] = {
    {"softmax along the last axis",
     "dim a, b\ninput x: f32[a b]\noutput y = softmax(x, b)\n",
     {{"a", 40}, {"b", 65}},
     320,
     40 * (65 * kSoftmax + 1)},
    {"of whole vectors", "dim a, b\ninput x: f32[a b]\noutput y = softmax(x, b)\n", {{"a", 33}, {"b", 64}}, 256, 33 * (64 * kSoftmax + 1)},
    {"over two axes",
     "dim a, b, c\ninput x: f32[a b c]\noutput y = exp(x) / sum(exp(x), b, c)\n",
     {{"a", 40}, {"b", 3}, {"c", 63}},
     768,
     40 * (3 * 63 * 2 + 1)},
    {"in bf16, with f32 inside",
     "dim a, b\ninput x: bf16[a b]\noutput y = softmax(x, b)\n",
     {{"a", 40}, {"b", 96}},
     384,
     40 * (96 * kSoftmax + 1)},
    {"not what is cheap", "dim a, b\ninput x: f32[a b]\noutput y = x - mean(x, b)\n", {{"a", 40}, {"b", 65}}, 0, 40 * (65 + 1)},
    {"not across rows, which are several kernels",
     "dim a, b\ninput x: f32[a b]\noutput y = softmax(x, a)\n",
     {{"a", 65}, {"b", 64}},
     0,
     65 * 64 * 3},
    {"not a row of a few", "dim a, b\ninput x: f32[a b]\noutput y = softmax(x, b)\n", {{"a", 400}, {"b", 8}}, 0, 400 * 8 * 5},
    {"not a long row", "dim a, b\ninput x: f32[a b]\noutput y = softmax(x, b)\n", {{"a", 16}, {"b", 16385}}, 0, 16 * 16385 * 5},
};

}  // namespace

TEST_CASE("kept rows: where they pay, with the interpreter's values") {
  for (const KeptRowsCase& test : kCases) {
    CAPTURE(test.what);
    const Graph graph =
        assign_precision(simplify(expand(compile_text(test.program, test.dims), Roots::inference), Roots::inference), Policy::inherit);
    CpuOptions options;
    options.mode = RunMode::inference;
    options.cache.clear();
    const CpuProgram program(graph, test.dims, options);
    int64_t bytes = 0, elementwise = 0;
    for (const GraphKernel& k : program.lowered().list.kernels) {
      bytes += row_bytes(*k.kernel);
      elementwise += work_of(*k.kernel).elementwise;
    }
    CHECK(bytes == test.row_bytes);
    CHECK(elementwise == test.elementwise);
    CHECK(program.program().scratch_bytes == test.row_bytes);
    const TensorMap inputs = some_inputs(graph, test.dims);
    const Tensor wanted = interpret(graph, test.dims, inputs, {}, {}).outputs.at(0).second;
    const double error = wanted.dtype == DType::bf16 ? 0x1p-6 : 4e-6;
    for (const int threads : {1, 2, 8}) {
      const Tensor y = run_program(program.program(), program.functions(), inputs, {}, {}, {}, threads).outputs.at(0).second;
      REQUIRE(y.reals.size() == wanted.reals.size());
      for (size_t i = 0; i < y.reals.size(); ++i) CHECK(y.reals[i] == doctest::Approx(wanted.reals[i]).epsilon(error).scale(1e-3));
    }
  }
}
