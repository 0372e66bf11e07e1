// SPDX-License-Identifier: Apache-2.0
// Generated code against the interpreter and against PyTorch's values: every op, the examples, with and without fusion.
#include <doctest/doctest.h>

#include "tests/support/backend_programs.h"
#include "tests/support/exact_numbers.h"
#include "tests/support/log_sums.h"

using namespace einc;

namespace {

CpuRun run(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
           const Scheduling& scheduling) {
  return run_cpu(graph, dims, inputs, params, states, {}, 1, scheduling);
}

// The last makes again all that the backward may make again, which values of so small programs are otherwise too small for.
const Scheduling kWays[] = {Scheduling::unfused, Scheduling::all, [] {
                              Scheduling recomputing;
                              recomputing.recompute = {0, 0};
                              return recomputing;
                            }()};

}  // namespace

TEST_CASE("cpu: programs with PyTorch's values") { check_torch_programs(run, kWays, 2); }
TEST_CASE("cpu: layers with PyTorch's values") { check_layers(run, kWays, 2); }
TEST_CASE("cpu: the examples") { check_examples(run, kWays, 2); }
TEST_CASE("cpu: losses are as accurate as they are small") { check_small_losses(run, kWays, 1e-6); }
TEST_CASE("cpu: logarithms of sums of infinities") { check_infinite_rows(run, kWays); }
TEST_CASE("cpu: targets of any shape") { check_targets(run, kWays); }
TEST_CASE("cpu: integers beyond 2^53") { check_wide_integers(run, kWays); }
TEST_CASE("cpu: running sums of a long line") { check_running_sums(run, kWays); }
TEST_CASE("cpu: random draws and dropout") { check_draws(run, kWays); }
TEST_CASE("cpu: scatters of many positions") { check_scatters(run, kWays); }
TEST_CASE("cpu: long orders") { check_orders(run, kWays); }
