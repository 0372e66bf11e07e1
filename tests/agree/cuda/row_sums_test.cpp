// SPDX-License-Identifier: Apache-2.0
// Kernels that go over rows and also sum over all of them on the emulated GPU: a norm's backward reads each value once, and gives its
// weights' gradients with its input's.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include "compiler/gpu_plan/gpu_plan.h"
#include "compiler/lower/kernel_work.h"
#include "compiler/precision/assign.h"
#include "compiler/simplify/expand.h"
#include "compiler/simplify/simplify.h"
#include "tests/fuzz/mutations.h"
#include "tests/support/kernel_programs.h"

using namespace einc;

namespace {

struct RowSizes {
  int64_t batch, seq, wide;
};
// One row; fewer than parts; odd ones; rows that a warp holds, and such as take a block.
const RowSizes kRowSizes[] = {{1, 1, 40}, {1, 3, 33}, {3, 7, 37}, {5, 9, 64}, {2, 19, 1001}, {3, 11, 1536}};

// The gradients of a layer norm's scale and shift and of a bias before it, over two leading axes.
std::string layer_norm_of(const RowSizes& s, const char* dtype) {
  return fmt::format(R"(import nn
dim batch = {}, seq = {}, wide = {}
input x: {}[batch seq wide]
input p: {}[batch seq wide]
param bias: [wide] ~ normal(std = 0.3)
y = layer_norm(cast(x, f32) + bias)
loss = mean(y * cast(p, f32))
minimize loss using adamw(lr = 0.1, clip_norm = 1.0)
)",
                     s.batch, s.seq, s.wide, dtype, dtype);
}

std::string rms_norm_of(const RowSizes& s, const char* dtype) {
  return fmt::format(R"(dim rows = {}, wide = {}
input x: {}[rows wide]
input dy: {}[rows wide]
input scale: f32[wide]
w = cast(x, f32)
y = w * rsqrt(mean(w^2, wide) + 1e-5) * scale
total = sum(y * dy)
output dx: {}[rows wide] = cast(grad(total, w), {})
output dscale = grad(total, scale)
)",
                     s.batch * s.seq, s.wide, dtype, dtype, dtype, dtype);
}

std::unique_ptr<CudaProgramText> compiled(const std::string& text) {
  std::string problem;
  const auto wanted = interpret_text(text, 1, problem);
  REQUIRE(problem == "");
  return compile_for_cuda(wanted->graph, {}, {});
}

// Runs as far as the launch that makes the loss.
struct UntilLoss {
  CudaExecutor& executor;
  const Executable& program;
  int find(BufferRole role, const std::string& name) const { return executor.find(role, name); }
  void set(uint32_t buffer, const HostArray& value) { executor.set(buffer, value); }
  HostArray get(uint32_t buffer) { return executor.get(buffer); }
  void run(uint64_t seed, uint64_t step) {
    executor.run_while(seed, step, [&](size_t launch) {
      return std::ranges::find(program.launches[launch].buffers, static_cast<uint32_t>(program.loss)) ==
             program.launches[launch].buffers.end();
    });
  }
};

int64_t kernels_with_parts(const CudaProgramText& program) {
  return std::ranges::count_if(program.list.kernels, [](const GraphKernel& k) { return k.kernel->part.has_value(); });
}

}  // namespace

TEST_CASE("cuda: a norm's backward gives the interpreter's gradients") {
  for (const RowSizes& sizes : kRowSizes)
    for (const char* dtype : {"f32", "bf16"})
      for (const std::string& text : {layer_norm_of(sizes, dtype), rms_norm_of(sizes, dtype)}) {
        CAPTURE(text);
        CHECK(cuda_disagreement(text, 3) == "");
      }
}

TEST_CASE("cuda: a norm's backward reads its input and the gradient once, and writes once") {
  const RowSizes sizes{4, 512, 768};
  const auto program = compiled(rms_norm_of(sizes, "bf16"));
  REQUIRE(program->list.kernels.size() == 2);
  CHECK(kernels_with_parts(*program) == 1);
  const int64_t value = sizes.batch * sizes.seq * sizes.wide * 2, row = sizes.wide * 4, parts = sizes.batch * sizes.seq / 8;
  const KernelWork rows = work_of(*program->list.kernels[0].kernel), sums = work_of(*program->list.kernels[1].kernel);
  CHECK(rows.bytes_read == 2 * value + row);
  CHECK(rows.bytes_written == value + parts * row);
  CHECK(sums.bytes_read == parts * row);
  CHECK(sums.bytes_written == row);
}

TEST_CASE("cuda: a norm's backward loads the gradient that it adds to with its row") {
  const auto text = [](int64_t wide, const char* dtype) {
    return fmt::format(R"(dim rows = 37, wide = {}
input x: {}[rows wide]
input dy: {}[rows wide]
input behind: f32[rows wide]
input scale: f32[wide]
w = cast(x, f32)
y = w * rsqrt(mean(w^2, wide) + 1e-5) * scale
total = sum(y * dy)
output dx: f32[rows wide] = grad(total, w) + behind
output dscale = grad(total, scale)
)",
                       wide, dtype, dtype);
  };
  const auto ahead_of = [&](int64_t wide, const char* dtype) -> size_t {
    const auto program = compiled(text(wide, dtype));
    for (const GraphKernel& k : program->list.kernels)
      if (k.kernel->part) return std::get<ThreadedLoops>(k.plan->how).threads.ahead.size();
    return SIZE_MAX;
  };
  for (const char* dtype : {"bf16", "f32"})
    for (const int64_t wide : {768, 1024, 1536}) CHECK(cuda_disagreement(text(wide, dtype), 3) == "");
  CHECK(ahead_of(768, "bf16") == 1);
  CHECK(ahead_of(1024, "bf16") == 1);
  CHECK(ahead_of(1024, "f32") == 0);  // 128 words of sums, weights and the row, and 32 more
}

TEST_CASE("cuda: as many parts of rows as registers let run together") {
  const auto parts_of = [](const std::string& text) -> int64_t {
    const Graph graph = assign_precision(simplify(expand(compile_text(text), Roots::training), Roots::training), Policy::inherit);
    const auto program = compile_for_cuda(graph, {}, {});
    for (const GraphKernel& k : program->list.kernels)
      if (k.kernel->part) return k.kernel->extent(*k.kernel->part);
    return 0;
  };
  CHECK(parts_of(layer_norm_of({16, 1024, 768}, "bf16")) == 264);   // three sums, and four tensors of a row
  CHECK(parts_of(layer_norm_of({16, 1024, 256}, "bf16")) == 528);   // a third of it
  CHECK(parts_of(layer_norm_of({16, 1024, 1024}, "f32")) == 528);   // 224 words: a row a block
  CHECK(parts_of(layer_norm_of({16, 1024, 1536}, "bf16")) == 528);  // and so here
  CHECK(parts_of(layer_norm_of({2, 64, 768}, "bf16")) == 16);       // of eight rows each
}

TEST_CASE("cuda: one kernel for all sums of a norm's backward") {
  const auto program = compiled(layer_norm_of({4, 64, 96}, "f32"));
  CHECK(kernels_with_parts(*program) == 1);
  for (const GraphKernel& k : program->list.kernels) {
    if (!k.kernel->part) continue;
    int64_t sums = 0;
    for (const Stage& stage : k.kernel->stages) sums += std::ranges::count(stage.stores, StoreMode::sum, &Store::mode);
    CHECK(sums == 3);
  }
}

TEST_CASE("cuda: rows of which the threads cannot hold the sums leave these to kernels of their own") {
  CHECK(kernels_with_parts(*compiled(rms_norm_of({2, 8, 1 << 14}, "bf16"))) == 1);
  CHECK(kernels_with_parts(*compiled(rms_norm_of({2, 8, (1 << 14) + 2}, "bf16"))) == 0);
  CHECK(kernels_with_parts(*compiled(rms_norm_of({2, 8, 31}, "bf16"))) == 0);
}

TEST_CASE("cuda: a norm's weights are as they were until the loss is known") {
  const std::string text = layer_norm_of({3, 7, 37}, "f32");
  for (const std::string& program : {text, text.substr(0, text.find("minimize")) + "minimize loss using sgd(lr = 0.1)\n"}) {
    std::string problem;
    const auto wanted = interpret_text(program, 1, problem);
    REQUIRE(problem == "");
    use_test_gpu();
    const auto compiled = compile_for_cuda(wanted->graph, {}, {});
    const CudaKernels kernels(compiled->executable, test_cubins(), 2);
    CudaExecutor executor(compiled->executable, kernels);
    UntilLoss machine{executor, compiled->executable.program};
    const CpuRun found = run_on(machine, compiled->executable.program, wanted->inputs, wanted->params, wanted->states, wanted->options);
    CHECK(found.params.size() == 3);
    for (const auto& [name, value] : found.params) {
      CAPTURE(name.str());
      CHECK(same_bits(value, convert(wanted->params.at(name), DType::f32)));
    }
  }
}

// On the emulated GPU, whose threads run in an order that shows each fault; a real one may happen to be right, as without a barrier.
TEST_CASE("cuda: what goes wrong with sums over rows is found") {
  if (tests_real_gpu()) {
    MESSAGE("left out on a real GPU");
    return;
  }
  std::string problem;
  const auto wanted = interpret_text(layer_norm_of({3, 7, 37}, "f32"), 1, problem);
  REQUIRE(problem == "");
  use_test_gpu();
  for (const Mutation& mutation : gpu_mutations()) {
    INFO(std::string(mutation.name));
    const auto mutated = mutated_for_cuda(wanted->graph, mutation, 1);
    REQUIRE(mutated);
    const CudaKernels kernels(mutated->executable, test_cubins(), 2);
    CudaExecutor machine(mutated->executable, kernels);
    const CpuRun found = run_on(machine, mutated->executable.program, wanted->inputs, wanted->params, wanted->states, wanted->options);
    CHECK(difference(*wanted, found) != "");
  }
}
