// Generated CUDA on the emulated GPU against the interpreter and against PyTorch's values: every op, the examples, with and without fusion.
#include <doctest/doctest.h>

#include "tests/support/backend_programs.h"
#include "tests/support/run_cuda.h"

using namespace einc;

namespace {

CpuRun run(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
           const Fusion& fusion) {
  return run_cuda(graph, dims, inputs, params, states, {}, fusion);
}

const Fusion kWays[] = {Fusion::off, Fusion::on};

}  // namespace

TEST_CASE("cuda: programs with PyTorch's values") { check_torch_programs(run, kWays); }
TEST_CASE("cuda: the examples") { check_examples(run, kWays); }
TEST_CASE("cuda: random draws and dropout") { check_draws(run, kWays); }
TEST_CASE("cuda: scatters of many positions") { check_scatters(run, kWays); }
