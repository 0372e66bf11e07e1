// SPDX-License-Identifier: Apache-2.0
// Predicted bytes against the bytes an executor asks the system for, read off mmap itself.
#include <doctest/doctest.h>
#include <sys/syscall.h>
#include <unistd.h>

#include "compiler/precision/assign.h"
#include "compiler/report/report.h"
#include "compiler/simplify/dead.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/run_cpu.h"

namespace {
size_t mapped_bytes = 0;  // since last set to 0
}

// The program's mmap: every mapping is made here, those of malloc's large blocks excepted.
extern "C" void* mmap(void* address, size_t length, int protection, int flags, int file, off_t offset) noexcept {
  mapped_bytes += length;
  return reinterpret_cast<void*>(syscall(SYS_mmap, address, length, protection, flags, file, offset));
}

using namespace einc;

namespace {

Graph trained(const char* name, const Bindings& dims, Roots roots = Roots::training) {
  return assign_precision(simplify(remove_dead(expand(compile_example(name, dims), roots), roots), roots));
}

void check_mapped(const Graph& graph, const Bindings& dims) {
  ReportOptions stated;
  stated.given = dims;
  stated.plan = plan_for_processor(native_processor());
  CpuOptions options;
  options.cache.clear();
  const CpuProgram program(graph, dims, options);
  mapped_bytes = 0;
  const Executor executor(program.program(), program.functions(), 1);
  CHECK(Rational(static_cast<int64_t>(mapped_bytes)) == build_report(graph, stated).memory.peak_training.value);
}

}  // namespace

TEST_CASE("memory: an executor maps the peak that the report states") {
  const std::pair<const char*, Bindings> models[] = {
      {"two_layer.ein", {{"batch", 64}, {"width", 40}, {"out", 24}}},
      {"mlp.ein", {{"batch", 32}, {"features", 50}, {"hidden", 40}, {"classes", 10}}},
      {"gpt2.ein", {{"batch", 2}, {"seq", 32}, {"vocab", 100}, {"layers", 3}, {"heads", 2}, {"head", 16}}},
  };
  for (const auto& [name, dims] : models) {
    CAPTURE(name);
    for (const Roots roots : {Roots::training, Roots::step}) check_mapped(trained(name, dims, roots), dims);
  }
}

TEST_CASE("memory: a step whose outputs nobody reads needs less and trains the same") {
  const Bindings dims{{"batch", 2}, {"seq", 32}, {"vocab", 100}, {"layers", 1}, {"heads", 2}, {"head", 16}};
  const Graph whole = trained("gpt2.ein", dims), alone = trained("gpt2.ein", dims, Roots::step);
  REQUIRE(whole.outputs.size() == 1);
  REQUIRE(alone.outputs.empty());
  const TensorMap inputs = some_inputs(whole, dims), params = initial_params(whole, dims, 1), states = initial_states(whole, dims, 1);
  const CpuRun with = run_cpu(whole, dims, inputs, params, states), without = run_cpu(alone, dims, inputs, params, states);
  CHECK(same_bits(*with.loss, *without.loss));
  CHECK(same_bits(with.params, without.params));
  CHECK(same_bits(with.states, without.states));
  const auto bytes = [&](const Graph& graph) { return form_graph(graph, dims, RunMode::training).plan.total_bytes; };
  CHECK(bytes(alone) < bytes(whole));
}

TEST_CASE("memory: what training adds for its watchers, and the outputs of a program that minimizes nothing, stay") {
  Graph graph = trained("two_layer.ein", {});
  graph.outputs.push_back({Name("optimizer.gradient_norm"), graph.loss});
  const Graph watched = remove_dead(graph, Roots::step);
  REQUIRE(watched.outputs.size() == 1);
  CHECK(watched.outputs[0].name == Name("optimizer.gradient_norm"));
  graph.loss = NodeId{};
  CHECK(remove_dead(graph, Roots::step).outputs.size() == graph.outputs.size());
}
