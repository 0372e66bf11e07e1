// SPDX-License-Identifier: Apache-2.0
// Attention in tiles against the interpreter and against itself with scores stored: layouts, masks, groups of heads, odd sizes,
// gradients, small floats; the same bits on any number of threads.
#include <doctest/doctest.h>

#include <array>

#include "compiler/lower/attention.h"
#include "tests/support/attention_programs.h"
#include "tests/support/run_cpu.h"
#include "tests/support/sample.h"

using namespace einc;
using namespace einc::attention_programs;

namespace {

int attentions(const LoweredGraph& lowered) {
  const auto& kernels = lowered.list.kernels;
  return static_cast<int>(
      std::count_if(kernels.begin(), kernels.end(), [](const GraphKernel& k) { return k.kernel->attention.has_value(); }));
}

enum class Expect { attention, forward, anything };  // forward: without a loss

std::string without_loss(const std::string& text) { return text.substr(0, text.find("loss = ")); }

void check(const std::string& text, const Bindings& dims, Expect expect, double tolerance = 2e-5) {
  CAPTURE(text);
  std::string sizes;
  for (const auto& [name, value] : dims) sizes += fmt::format("{}={} ", name.str(), value);
  CAPTURE(sizes);
  const bool trains = expect != Expect::forward;
  const Graph graph = finished(compile_text(trains ? text : without_loss(text), dims), trains ? Roots::training : Roots::inference);
  const TensorMap inputs = inputs_of(graph, dims), params = initial_params(graph, dims, 1), states = initial_states(graph, dims, 1);
  const InterpretResult wanted = interpret(graph, dims, inputs, params, states);
  for (const Scheduling& scheduling : {Scheduling::all, Scheduling::without_attention}) {
    const bool in_tiles = !scheduling.leaves_out("attention");
    CAPTURE(in_tiles);
    CpuOptions options;
    options.scheduling = scheduling;
    options.cache.clear();
    const CpuProgram cpu(graph, dims, options);
    if (expect != Expect::anything) CHECK(attentions(cpu.lowered()) == (!in_tiles ? 0 : trains ? 2 : 1));
    const auto run = [&](int threads) { return run_program(cpu.program(), cpu.functions(), inputs, params, states, {}, threads); };
    const CpuRun one = run(1);
    for (size_t o = 0; o < one.outputs.size(); ++o) CHECK(difference(one.outputs[o].second, wanted.outputs[o].second, tolerance) == "");
    for (const auto& [name, value] : one.gradients) {
      CAPTURE(name.str());
      CHECK(difference(value, wanted.gradients.at(name), tolerance) == "");
    }
    for (int threads : {2, 8}) {
      const CpuRun again = run(threads);
      for (size_t o = 0; o < one.outputs.size(); ++o) CHECK(again.outputs[o].second.reals == one.outputs[o].second.reals);
      for (const auto& [name, value] : one.gradients) CHECK(again.gradients.at(name).reals == value.reals);
    }
  }
}

}  // namespace

TEST_CASE("attention: layouts and odd sizes") {
  for (const Layout& layout : sampled(kLayouts, 2)) check(program(layout, kCausal), sizes(33, 33, 17, 20), Expect::attention);
  for (int64_t n : {1, 2, 3, 17, 63, 65})
    check(program(kPlain, kCausal), sizes(n, n, 16, 16), n < 4 ? Expect::anything : Expect::attention);
  check(program(kPlain, "s"), sizes(40, 7, 3, 2), Expect::attention);
  check(program(kPlain, "s"), sizes(5, 100, 64, 65), Expect::attention);
  check(program(kPlain, kCausal), sizes(128, 128, 64, 64), Expect::attention);
}

TEST_CASE("attention: masks and what else is made of scores") {
  for (const char* mask : sampled(kMasks, 2)) check(program(kLayouts[1], mask), sizes(50, 50, 16, 16), Expect::attention);
}

// Where a maximum is raised a row without keys is one whose keys add nothing, and those are skipped. Otherwise it is NaN, of all its keys.
TEST_CASE("attention: rows without keys") {
  const Bindings dims = sizes(100, 100, 16, 20);
  const auto bounds_of = [&](const std::string& text, Roots roots) {
    size_t bounds = 0;
    const CpuProgram cpu(finished(compile_text(roots == Roots::training ? text : without_loss(text), dims), roots), dims, {});
    for (const GraphKernel& k : cpu.lowered().list.kernels) {
      if (!k.kernel->attention) continue;
      bounds += k.kernel->attention->bounds.size();
      constexpr int64_t kSeen = 50 * 50;  // by each head of rows 50 to 99: 2 q - 99
      if (bounds == 2) CHECK(pairs_made(*k.kernel) >= 8 * kSeen);
    }
    return bounds;
  };
  for (const Layout& layout : {kLayouts[0], kLayouts[1]})
    for (const char* mask : kKeylessMasks) {
      check(raised(layout, mask), dims, Expect::forward);
      CHECK(bounds_of(raised(layout, mask), Roots::inference) == (mask == kKeylessMasks[2] ? 2 : 1));
      CHECK(bounds_of(program(layout, mask), Roots::inference) == 0);
      CHECK(bounds_of(program(layout, mask), Roots::training) == 0);
    }
}

TEST_CASE("attention: few rows without a backward, one at a time") {
  for (const int64_t rows : sampled(std::array{1, 2, 3}, 3)) {
    for (const Layout& layout : kLayouts)
      for (const int64_t keys : {5, 16, 17, 100}) check(program(layout, kCausal), sizes(rows, keys, 17, 20), Expect::forward);
    for (const int64_t width : {2, 3, 16, 63, 64}) check(program(kPlain, "s"), sizes(rows, 40, width, 66 - width), Expect::forward);
    for (const char* mask : {"where(iota(k) < length, s, -inf)", "s + bias", "where(iota(k) >= 70, s, -inf)", "tanh(s / 4) * 4"})
      check(program(kLayouts[1], mask), sizes(rows, 90, 16, 16), Expect::forward);
    check(program(kPlain, kCausal, "bf16"), sizes(rows, 33, 16, 20), Expect::forward, 0.03);
    check(program(kLayouts[1], "s", "f16"), sizes(rows, 33, 16, 20), Expect::forward, 0.004);
  }
}

TEST_CASE("attention: small floats") {
  check(program(kLayouts[1], kCausal, "bf16"), sizes(33, 33, 16, 20), Expect::attention, 0.03);
  check(program(kPlain, kCausal, "f16"), sizes(33, 33, 16, 20), Expect::attention, 0.004);
}

// Whole tiles of rows and keys in bf16, where the processor multiplies them: every product of forward and backward.
TEST_CASE("attention: matrix tiles") {
  const auto in_bf16 = [](const Layout& layout, const char* masked) {
    std::string text = program(layout, masked, "bf16");
    for (const std::string name : {"query", "keys", "values"}) {
      const std::string declared = "param " + name + ": ";
      text.insert(text.find(declared) + declared.size(), "bf16");
    }
    return text;
  };
  const auto on_tiles = [](const std::string& text, const Bindings& dims) {
    const Graph graph = finished(compile_text(text, dims), Roots::training);
    CpuOptions options;
    options.cache.clear();
    const CpuProgram cpu(graph, dims, options);
    size_t found = 0;
    for (const PlannedKernel& f : cpu.lowered().lowered.functions)
      if (f.attention)
        for (size_t i = 0; i < f.attention->products.size(); ++i)
          found += f.attention->attention().steps[i].part != AttentionPart::fold && f.attention->products[i].on_matrix_tiles ? 1 : 0;
    return found;
  };
  constexpr size_t kProducts = 6;  // two of the forward, four of the backward: the gradient of y is computed where it is read
  CHECK(on_tiles(in_bf16(kPlain, kCausal), sizes(64, 64, 32, 48)) == (native_processor().matrix_tiles ? kProducts : 0));
  CHECK(on_tiles(in_bf16(kPlain, kCausal), sizes(48, 48, 32, 48)) == 0);
  for (const size_t layout : {0, 2}) check(in_bf16(kLayouts[layout], kCausal), sizes(64, 64, 32, 48), Expect::attention, 0.03);
  for (const size_t mask : {0, 1}) check(in_bf16(kLayouts[1], kMasks[mask]), sizes(64, 64, 32, 16), Expect::anything, 0.03);
  check(in_bf16(kPlain, "s"), sizes(32, 96, 64, 16), Expect::attention, 0.03);
}
