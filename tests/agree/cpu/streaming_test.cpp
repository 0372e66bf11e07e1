// SPDX-License-Identifier: Apache-2.0
// Results that are written past the caches and operands that are fetched ahead: the same bits as without, on any number of
// threads. Which is which is planned for a processor whose caches hold next to nothing.
#include <doctest/doctest.h>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cpu.h"

using namespace einc;

namespace {

struct StreamingCase {
  const char* text;
  Bindings dims;
  Roots roots;
  int streamed;  // functions that write past the caches
};
// One where the processor has them; one where a vector is a whole line.
constexpr int kOnMatrixTiles = -2, kOnWideVectors = -3;

int expected(const StreamingCase& test) {
  if (test.streamed == kOnMatrixTiles) return native_processor().matrix_tiles;
  if (test.streamed == kOnWideVectors) return native_processor().vector_bits >= 512;
  return test.streamed;
}

const char* kChain = "dim a, b, c\ninput x: f32[a b c]\ninput y: f32[a b c]\noutput z = (x * y + x) * y\n";
const char* kNorm =
    "dim a, b\ninput x: f32[a b]\ncentred = x - mean(x, b)\noutput y = centred * rsqrt(mean(centred^2, b) + 1e-5)\n"
    "output s = softmax(y, b)\n";
const char* kTurned = "dim a, b, c\ninput x: f32[a b c]\noutput y = rearrange(x, \"a b c -> a c b\")\n";
const char* kProduct = "dim m, n, k\ninput x: bf16[m k]\ninput y: bf16[k n]\noutput z = cast(einsum(x, y, \"m k, k n -> m n\"), f32) + 1\n";
const char* kSmall = "dim a, b\ninput x: bf16[a b]\noutput y = x + 1\n";
const char* kStep =
    "dim a, b\nparam w: f32[a b] ~ normal(std = 0.1)\ninput x: f32[a b]\nstate m: f32[a b] ~ zeros\nm <- m * 0.5 + x\n"
    "output y = w * x + m\noutput loss = mean(y^2)\nminimize loss using adamw(lr = 1e-3)\n";

const char* kSegments = "dim a, b, c\ninput x: f32[a b]\ninput ids: i32[a]\noutput y = segment_sum(x, ids, c)\n";

const StreamingCase kStreamingCases[] = {
    {kChain, {{"a", 3}, {"b", 5}, {"c", 64}}, Roots::inference, 1},
    {kChain, {{"a", 1}, {"b", 1}, {"c", 8192}}, Roots::inference, 1},
    {kChain, {{"a", 3}, {"b", 5}, {"c", 63}}, Roots::inference, 0},  // no whole lines
    {kNorm, {{"a", 17}, {"b", 80}}, Roots::inference, 1},
    {kTurned, {{"a", 2}, {"b", 64}, {"c", 96}}, Roots::inference, kOnWideVectors},
    {kTurned, {{"a", 2}, {"b", 65}, {"c", 96}}, Roots::inference, 0},
    {kSmall, {{"a", 40}, {"b", 96}}, Roots::inference, kOnWideVectors},
    {kSmall, {{"a", 40}, {"b", 47}}, Roots::inference, 0},
    {kProduct, {{"m", 40}, {"n", 96}, {"k", 70}}, Roots::inference, kOnMatrixTiles},
    {kProduct, {{"m", 40}, {"n", 90}, {"k", 70}}, Roots::inference, 0},
    {kSegments, {{"a", 40}, {"b", 64}, {"c", 20}}, Roots::inference, 0},  // cleared, then added to
    {kStep, {{"a", 32}, {"b", 64}}, Roots::training, -1},
};

CpuProgram compiled(const Graph& graph, const StreamingCase& test, int64_t cache_bytes) {
  CpuOptions options;
  options.mode = test.roots == Roots::inference ? RunMode::inference : RunMode::training;
  options.cache.clear();
  options.processor = native_processor();
  options.processor->streamed_bytes = options.processor->level2_bytes = cache_bytes;
  return CpuProgram(graph, test.dims, options);
}

std::vector<const PlannedKernel*> streaming(const CpuProgram& program) {
  std::vector<const PlannedKernel*> found;
  for (const PlannedKernel& f : program.lowered().lowered.functions)
    if (const std::vector<bool>& streamed = f.tiles ? f.tiles->streamed : f.plan.streamed;
        std::find(streamed.begin(), streamed.end(), true) != streamed.end())
      found.push_back(&f);
  return found;
}

}  // namespace

TEST_CASE("results past the caches have the same bits") {
  for (const StreamingCase& test : kStreamingCases) {
    CAPTURE(test.text);
    CAPTURE(test.dims.at("b"));
    const Graph graph = assign_precision(simplify(expand(compile_text(test.text, test.dims), test.roots), test.roots), Policy::inherit);
    const TensorMap inputs = some_inputs(graph, test.dims), params = initial_params(graph, test.dims, 1),
                    states = initial_states(graph, test.dims, 1);
    const CpuProgram kept = compiled(graph, test, int64_t{1} << 40), past = compiled(graph, test, 1);
    CHECK(streaming(kept).empty());
    if (expected(test) >= 0) CHECK(streaming(past).size() == static_cast<size_t>(expected(test)));
    const CpuRun wanted = run_program(kept.program(), kept.functions(), inputs, params, states, {}, 1);
    for (const int threads : {1, 2, 8})
      CHECK(same_bits(run_program(past.program(), past.functions(), inputs, params, states, {}, threads), wanted));
  }
}

// A store past the caches of a line that was just read would write it to memory and read it back.
TEST_CASE("results that take the place of an operand stay in the caches") {
  const StreamingCase& test = kStreamingCases[std::size(kStreamingCases) - 1];
  const Graph graph = assign_precision(simplify(expand(compile_text(test.text, test.dims), test.roots), test.roots), Policy::inherit);
  const CpuProgram program = compiled(graph, test, 1);
  CHECK(!streaming(program).empty());
  for (const Launch& launch : program.program().launches) {
    const std::vector<bool>& streamed = program.lowered().lowered.functions[launch.function].plan.streamed;
    for (size_t b = 0; b < streamed.size(); ++b) {
      if (!streamed[b]) continue;
      const ExecutableBuffer& result = program.program().buffers[launch.buffers[b]];
      CHECK(result.role != BufferRole::param);
      CHECK(result.role != BufferRole::state);
      for (size_t x = 0; x < streamed.size(); ++x)
        if (x != b) CHECK(program.program().buffers[launch.buffers[x]].offset != result.offset);
    }
  }
}
