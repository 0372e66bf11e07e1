// SPDX-License-Identifier: Apache-2.0
// Generated CUDA on the emulated GPU against the interpreter and against PyTorch's values: every op, the examples, with and without fusion.
#include <doctest/doctest.h>

#include "tests/support/backend_programs.h"
#include "tests/support/exact_numbers.h"
#include "tests/support/log_sums.h"
#include "tests/support/run_cuda.h"

using namespace einc;

namespace {

CpuRun run(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
           const Scheduling& scheduling) {
  return run_cuda(graph, dims, inputs, params, states, {}, scheduling);
}

// With all products that it can do done by cuBLASLt.
CpuRun run_by_library(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
                      const Scheduling& scheduling) {
  return run_cuda(graph, dims, inputs, params, states, {}, scheduling, {1});
}

const Scheduling kWays[] = {Scheduling::unfused, Scheduling::all};
const Scheduling kFused[] = {Scheduling::all};

// The host compiler takes 0.1 s for each text of the emulated GPU: by turns.
constexpr size_t kEvery = 3;

}  // namespace

TEST_CASE("cuda: programs with PyTorch's values") { check_torch_programs(run, kWays, kEvery); }
TEST_CASE("cuda: layers with PyTorch's values") { check_layers(run, kWays, kEvery); }
TEST_CASE("cuda: the examples") { check_examples(run, kWays, kEvery); }
TEST_CASE("cuda: losses are as accurate as they are small") { check_small_losses(run, kWays, 1e-6); }
TEST_CASE("cuda: logarithms of sums of infinities") { check_infinite_rows(run, kWays); }
TEST_CASE("cuda: targets of any shape") { check_targets(run, kWays); }
TEST_CASE("cuda: integers beyond 2^53") { check_wide_integers(run, kWays); }
TEST_CASE("cuda: running sums of a long line") { check_running_sums(run, kWays); }
TEST_CASE("cuda: random draws and dropout") { check_draws(run, kWays); }
TEST_CASE("cuda: scatters of many positions") { check_scatters(run, kWays); }
TEST_CASE("cuda: long orders") { check_orders(run, kWays); }
TEST_CASE("cuda: packs of points") { check_packs(run, kWays); }
TEST_CASE("cuda: products by the library") {
  check_examples(run_by_library, kFused, kEvery);
  check_products(run_by_library, kFused);
  check_products(run, kWays);
}
