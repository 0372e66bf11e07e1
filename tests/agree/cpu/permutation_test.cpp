// SPDX-License-Identifier: Apache-2.0
// Axes in another order: elements that lie side by side along another axis than the lanes are read in squares.
#include <doctest/doctest.h>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cpu.h"

using namespace einc;

namespace {

const char* kMoved[] = {
    "dim a, b, c\ninput x: f32[a b c]\noutput y = rearrange(x, \"a b c -> a c b\")\n",
    "dim a, b, c\ninput x: f32[a b c]\noutput y = rearrange(x, \"a b c -> c b a\")\n",
    "dim a, b, c\ninput x: f32[a b c]\noutput y = rearrange(x, \"a b c -> b c a\")\n",
    "dim a, b, c\ninput x: bf16[a b c]\noutput y = rearrange(x, \"a b c -> (a c) b\")\n",
    "dim a, b, c\ninput x: i32[a b c]\noutput y = rearrange(x, \"a b c -> c a b\")\n",
    "dim a, b, c\ninput x: f64[a b c]\noutput y = rearrange(x, \"a b c -> a c b\")\n",
    "dim a, b, c\ninput x: bool[a b c]\noutput y = rearrange(x, \"a b c -> a c b\")\n",
    // Both orders at once, and one value in every square.
    "dim a, b, c\ninput x: f32[a b c]\ninput z: f32[a c b]\ninput w: f32[c]\noutput y = rearrange(x * w, \"a b c -> a c b\") - z\n",
};

const Bindings kSizes[] = {{{"a", 1}, {"b", 16}, {"c", 16}},  {{"a", 2}, {"b", 65}, {"c", 33}}, {{"a", 3}, {"b", 17}, {"c", 300}},
                           {{"a", 70}, {"b", 15}, {"c", 63}}, {{"a", 2}, {"b", 2}, {"c", 513}}, {{"a", 1}, {"b", 129}, {"c", 257}}};

// Integers that every format holds.
TensorMap whole_inputs(const Graph& graph, const Bindings& dims) {
  TensorMap inputs = some_inputs(graph, dims);
  for (auto& [name, tensor] : inputs) {
    const auto number = [](size_t i) { return static_cast<int64_t>(i * 37 % 251) - 125; };
    for (size_t i = 0; i < tensor.reals.size(); ++i) tensor.reals[i] = static_cast<double>(number(i));
    if (tensor.dtype == DType::boolean) continue;
    for (size_t i = 0; i < tensor.ints.size(); ++i) tensor.ints[i] = number(i);
  }
  return inputs;
}

bool any_turned(const CpuProgram& program) {
  const auto& functions = program.lowered().lowered.functions;
  return std::any_of(functions.begin(), functions.end(), [](const PlannedKernel& k) { return k.plan.turned.has_value(); });
}

}  // namespace

TEST_CASE("permutations: every element at its place, whatever the sizes and the dtype") {
  int turned = 0;
  for (const std::string text : kMoved)
    for (const Bindings& dims : kSizes) {
      CAPTURE(text);
      CAPTURE(dims.at("b"));
      CAPTURE(dims.at("c"));
      const Graph graph = assign_precision(simplify(expand(compile_text(text, dims), Roots::inference), Roots::inference), Policy::inherit);
      const TensorMap inputs = whole_inputs(graph, dims);
      CpuOptions options;
      options.mode = RunMode::inference;
      options.cache.clear();
      const CpuProgram program(graph, dims, options);
      turned += any_turned(program) ? 1 : 0;
      const Tensor wanted = interpret(graph, dims, inputs, {}, {}).outputs.at(0).second;
      for (const int threads : {1, 3}) {
        const Tensor found = run_program(program.program(), program.functions(), inputs, {}, {}, {}, threads).outputs.at(0).second;
        CHECK(same_bits(found, wanted));
      }
    }
  CHECK(turned > 20);
}
