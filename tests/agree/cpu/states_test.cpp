// SPDX-License-Identifier: Apache-2.0
// States of which a run replaces elements: written where they lie when nothing else reads them, and right in any case.
#include <doctest/doctest.h>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "runtime/base/failure.h"
#include "tests/support/run_cpu.h"

using namespace einc;

namespace {

const std::string kHead =
    "dim n = 3, context = 40, c = 20\ninput x: f32[n c]\ninput first: i32[]\nstate s: f32[context c] ~ normal(std = 1)\n"
    "at = first + iota(n)\n";

// Bytes that the program holds besides inputs, params and states.
int64_t check(const std::string& rest) {
  CAPTURE(rest);
  const Graph graph = assign_precision(simplify(expand(compile_text(kHead + rest), Roots::inference), Roots::inference), Policy::f32);
  TensorMap inputs = some_inputs(graph, {});
  inputs.at(Name("first")).ints = {5};
  const TensorMap states = initial_states(graph, {}, 1);
  InterpretOptions inference;
  inference.mode = RunMode::inference;
  const InterpretResult wanted = interpret(graph, {}, inputs, {}, states, inference);
  int64_t own = 0;
  for (const Scheduling& scheduling : {Scheduling::unfused, Scheduling::all}) {
    CpuOptions options;
    options.mode = RunMode::inference;
    options.scheduling = scheduling;
    options.cache.clear();
    const CpuProgram cpu(graph, {}, options);
    own = cpu.lowered().plan.own_bytes;
    const CpuRun found = run_program(cpu.program(), cpu.functions(), inputs, {}, states, inference, 2);
    const auto same = [](const Tensor& f, const Tensor& w) {
      REQUIRE(f.shape == w.shape);
      for (int64_t i = 0; i < w.count(); ++i) CHECK(f.real_at(i) == doctest::Approx(w.real_at(i)).epsilon(1e-5));
    };
    for (size_t i = 0; i < wanted.outputs.size(); ++i) same(found.outputs[i].second, wanted.outputs[i].second);
    for (const auto& [name, value] : wanted.states) same(found.states.at(name), value);
  }
  return own;
}

constexpr int64_t kWhole = 40 * 20 * 4;

}  // namespace

TEST_CASE("states: elements are written where the state lies") {
  CHECK(check("s[context = at] <- x\noutput y = sum(x, c)") < kWhole);
  CHECK(check("s[context = first] <- x[n = 1]\noutput y = sum(x, c)") < kWhole);
  CHECK(check("s[context = at] <- x\noutput y = sum(updated(s), context)") < kWhole);
  CHECK(check("s[context = at] <- x\noutput y = einsum(x, updated(s), \"n c, context c -> n context\")") < kWhole);
  CHECK(
      check("state t: f32[context c] ~ zeros\ns[context = at] <- x\nt[context = at] <- 2 * x\noutput y = sum(updated(s) * updated(t), c)") <
      kWhole);
}

TEST_CASE("states: the old value is there for whoever reads it") {
  check("s[context = at] <- x\noutput y = sum(s, context)");
  check("s[context = at] <- x\noutput y = sum(updated(s) - s, context)");
  check("s[context = at] <- x\noutput s");
  check("s[context = at] <- x\noutput y = rearrange(s, \"context c -> c context\")");
  check("state t: f32[context c] ~ zeros\ns[context = at] <- x\nt <- s\noutput y = sum(x, c)");
  check("state t: f32[context c] ~ zeros\ns[context = at] <- x\nt <- updated(s)\noutput y = sum(x, c)");
  check("state t: f32[context c] ~ zeros\ns[context = at] <- x + t[context = at]\nt[context = at] <- 2 * x\noutput y = sum(x, c)");
  check("state t: f32[context c] ~ zeros\ns <- s * 2\nt <- updated(s)\noutput y = sum(x, c)");
  check("s[context = at] <- x + s[context = at]\noutput y = sum(x, c)");
  check("s[context = 0] <- x[n = 0]\noutput y = sum(updated(s), context)");
}

TEST_CASE("states: a position beyond the end stops the run") {
  const Graph graph = assign_precision(
      simplify(expand(compile_text(kHead + "s[context = at] <- x\noutput y = sum(x, c)"), Roots::inference), Roots::inference),
      Policy::f32);
  TensorMap inputs = some_inputs(graph, {});
  inputs.at(Name("first")).ints = {38};
  InterpretOptions inference;
  inference.mode = RunMode::inference;
  CHECK_THROWS_AS(run_cpu(graph, {}, inputs, {}, initial_states(graph, {}, 1), inference), RuntimeFailure);
}
