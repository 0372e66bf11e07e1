// SPDX-License-Identifier: Apache-2.0
// Where a value that is not finite comes from, told by its subscripts, also when it lies in memory as a library wants it.
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "runtime/executor/find_fault.h"
#include "tests/support/run_cuda.h"

using namespace einc;

TEST_CASE("cuda: the element of a tensor that does not lie row-major is told by its subscripts") {
  const Graph elaborated = compile_text(R"(
dim b = 2, s = 8, h = 2, d = 8, e = 8, three = 3
param first: [e three h d] ~ ones
input x: f32[b s e]
input w: f32[b]
y = einsum(x, first, "b s e, e three h d -> three b h s d")
z = y * w
output n = einsum(z, z, "three b h s d, three b h u d -> three b h s u")
loss = sum(z)
minimize loss using sgd(lr = 0.001)
)");
  const Graph graph = assign_precision(simplify(expand(elaborated, Roots::training), Roots::training), Policy::f32);
  CudaOptions options;
  options.library.products = 1;
  const auto compiled = compile_for_cuda(graph, {}, options);
  const CudaExecutable& executable = compiled->executable;
  REQUIRE(!executable.orders.empty());
  use_test_gpu();
  const CudaKernels kernels(executable, test_cubins(), 2);
  CudaExecutor machine(executable, kernels);
  Tensor x = Tensor::zeros(DType::f32, {2, 8, 8}), w = Tensor::zeros(DType::f32, {2}), first = Tensor::zeros(DType::f32, {8, 3, 2, 8});
  for (double& value : first.reals) value = 1;
  for (double& value : w.reals) value = 1;
  for (size_t e = 0; e < 8; ++e) x.reals[(1 * 8 + 5) * 8 + e] = 3e38;  // only what stands at b = 1, s = 5 overflows
  const auto give = [&](BufferRole role, const char* name, const Tensor& value) {
    machine.set(static_cast<uint32_t>(machine.find(role, name)), to_host(value));
  };
  give(BufferRole::input, "x", x);
  give(BufferRole::input, "w", w);
  give(BufferRole::param, "first", first);
  HostArray held;
  const WatchedRun run{executable.program,
                       [&](uint32_t buffer) {
                         held = machine.get(buffer);
                         return static_cast<const std::byte*>(held.bytes.data());
                       },
                       [&](const std::function<bool(size_t)>& goes_on) { machine.run_while(1, 1, goes_on); }, executable.orders};
  const std::string said = find_fault(run, static_cast<uint32_t>(executable.program.loss));
  CHECK(said.find("is the first tensor that holds inf, at [0, 1, 0, 5, 0]") != std::string::npos);
  CAPTURE(said);
  CHECK(said.find("'y' (") == 0);
}
