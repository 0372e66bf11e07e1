// SPDX-License-Identifier: Apache-2.0
// Steps under a limit of memory on the emulated GPU: they keep within it and give the bits of the step without one. Epilogues are left out
// of both, since which of them run is measured.
#include <doctest/doctest.h>

#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/support/agree.h"
#include "tests/support/attention_programs.h"
#include "tests/support/least_memory.h"
#include "tests/support/limited_run.h"
#include "tests/support/random_check.h"
#include "tests/support/run_cpu.h"
#include "tests/support/run_cuda.h"
#include "tests/support/run_graph.h"
#include "tests/support/sample.h"

using namespace einc;
using namespace einc::attention_programs;

namespace {

constexpr int64_t kLibraryProducts = 1 << 12;

Scheduling within(std::optional<int64_t> bytes) {
  Scheduling options{{"epilogues"}};
  if (bytes) options.memory_limit = MemoryLimit{*bytes};
  return options;
}

PlannedStep planned(const Graph& graph, const Bindings& dims, const Scheduling& scheduling) {
  CudaOptions options;
  options.library.products = kLibraryProducts;
  options.scheduling = scheduling;
  return plan_for_gpu(options)(graph, dims, RunMode::training, {});
}

int64_t least_bytes(const Graph& graph, const Bindings& dims) {
  return least_memory([&] { planned(graph, dims, within(1)); });
}

void check(const Graph& graph, const Bindings& dims) {
  const TensorMap inputs = inputs_of(graph, dims), params = initial_params(graph, dims, 1), states = initial_states(graph, dims, 1);
  const int64_t whole = planned(graph, dims, within({})).memory.total(), least = least_bytes(graph, dims);
  CHECK(least < whole);
  const PlannedStep half = planned(graph, dims, within((whole + least) / 2));
  CHECK(half.memory.total() <= (whole + least) / 2);
  const PlannedStep step = planned(graph, dims, within(least));
  CHECK(step.memory.total() <= least);
  for (const PlannedStep* limited : {&half, &step}) CHECK(!limited->formed->recomputation.values.empty());
  const CpuRun wanted = run_cuda(graph, dims, inputs, params, states, {}, within({}), {kLibraryProducts});
  CHECK(same_bits(run_cuda(graph, dims, inputs, params, states, {}, within(least), {kLibraryProducts}), wanted));
}

Graph step_of(const Graph& graph, Policy policy) {
  return assign_precision(simplify(expand(graph, Roots::training), Roots::training), policy);
}

const Bindings kGpt{{"batch", 2}, {"seq", 32}, {"vocab", 64}, {"layers", 2}, {"heads", 2}, {"head", 16}};

std::string wrong_in_little_memory(const std::string& text, uint64_t seed) {
  std::string problem;
  const auto wanted = interpret_text(text, seed, problem);
  if (!wanted) return problem;
  constexpr LibraryLimits kAllProducts{1, 1, 1};
  const auto bytes_of = [&](const Scheduling& scheduling) {
    CudaOptions options;
    options.library = kAllProducts;
    options.scheduling = scheduling;
    return plan_for_gpu(options)(wanted->graph, {}, RunMode::training, {}).memory.total();
  };
  const auto run = [&](const Scheduling& scheduling) {
    return run_cuda(wanted->graph, {}, wanted->inputs, wanted->params, wanted->states, wanted->options, scheduling, kAllProducts);
  };
  return limited_difference(within({}), bytes_of, run);
}

}  // namespace

TEST_CASE("cuda: random programs under a limit of memory have the same bits") { check_random_programs(1, 24, wrong_in_little_memory); }

TEST_CASE("cuda: a step under a limit of memory has the same bits") {
  const Sample sample(3);
  if (sample.takes(0)) check(step_of(compile_example("gpt2.ein", kGpt), Policy::bf16), kGpt);
  const char* const layers = R"(
dim n = 256, d = 64
input x: [n d]
fn layer(x: [n d]) {
  param w: [d e=d] ~ normal(std = 0.1)
  return tanh(einsum(x, w, "n d, d e -> n e"))
}
for l in 4 { x = layer(x) as h }
loss = mean(x^2)
minimize loss using sgd(lr = 0.1)
)";
  if (sample.takes(1)) check(step_of(compile_text(layers, {}), Policy::f32), {});
}

// Scaled operands lie there in two orders, and maxima that scale the next run are taken in the kernels that make them.
TEST_CASE("cuda: a step in fp8 under a limit of memory frees about what one in bf16 does, and has the same bits") {
  const auto freed = [](const Graph& graph) { return planned(graph, kGpt, within({})).memory.total() - least_bytes(graph, kGpt); };
  const Graph graph = step_of(compile_example("gpt2.ein", kGpt), Policy::fp8);
  CHECK(2 * freed(graph) > freed(step_of(compile_example("gpt2.ein", kGpt), Policy::bf16)));
  if (Sample(3).takes(2)) check(graph, kGpt);
}

TEST_CASE("cuda: what is made again has no epilogue, nor what it is a copy of") {
  const Graph graph = step_of(compile_example("gpt2.ein", kGpt), Policy::bf16);
  CudaOptions options;
  options.library.products = kLibraryProducts;
  const auto whole = compile_for_cuda(graph, kGpt, options);
  options.scheduling.memory_limit = MemoryLimit{whole->plan.total_bytes + whole->executable.workspace_bytes - 4096};
  const auto limited = compile_for_cuda(graph, kGpt, options);
  REQUIRE(!limited->recomputation.values.empty());
  REQUIRE(!limited->list.library.fused.empty());
  for (const FusedProduct& fused : limited->list.library.fused)
    for (const uint32_t part : fused.parts)
      for (const NodeId id : limited->list.kernels[part].group.members) CHECK(!limited->bound.is_made_twice(id));
}
