// SPDX-License-Identifier: Apache-2.0
// The FLOPs that the report gives for attention on a GPU, beside those that the emulated tensor cores do.
#include <doctest/doctest.h>
#include <emulator.h>

#include "compiler/gpu_plan/gpu_plan.h"
#include "compiler/lower/kernel_work.h"
#include "tests/support/attention_programs.h"
#include "tests/support/run_cuda.h"

using namespace einc;
using namespace einc::attention_programs;

namespace {

struct Work {
  int64_t counted = 0, done = 0;
  bool warps_skip = false;
};

// Of a program whose only products on tensor cores are those of attention.
Work work_of(const std::string& text, const Bindings& dims, const GpuShape& gpu) {
  const Graph graph = finished(compile_text(text, dims), Roots::training);
  const TensorMap inputs = inputs_of(graph, dims), params = initial_params(graph, dims, 1);
  use_test_gpu();
  CudaOptions options;
  options.gpu = gpu;
  const auto program = compile_for_cuda(graph, dims, options);
  Work work;
  for (const GraphKernel& k : program->list.kernels) {
    if (!k.kernel->attention) continue;
    const auto* tiles = std::get_if<AttentionTiles>(&k.plan->how);
    REQUIRE(tiles != nullptr);
    work.warps_skip = work.warps_skip || tiles->warps_skip();
    work.counted += count_kernel(*k.kernel).work.contraction;
  }
  const unsigned long long before = emulator::flops_on_tensor_cores();
  const CpuRun run = run_compiled(program->executable, inputs, params, {}, {}, false);
  work.done = static_cast<int64_t>(emulator::flops_on_tensor_cores() - before);
  const InterpretResult wanted = interpret(graph, dims, inputs, params, {}, {});
  for (const auto& [name, value] : run.gradients) CHECK(difference(value, wanted.gradients.at(name), 0.03) == "");
  return work;
}

}  // namespace

// Of a tile on the diagonal what lies beyond it is made, too; tiles beyond are not. Sizes are whole tiles.
TEST_CASE("attention's FLOPs are those that tensor cores do") {
  const GpuShape ampere = gpu_shape_of_arch("sm_80").value(), hopper = gpu_shape_of_arch("sm_90").value();
  GpuShape few_processors = ampere;
  few_processors.processors = 1;  // then warps have 32 rows, and each skips tiles beyond its own
  const char *window = "where(iota(k) <= iota(q) and iota(q) - iota(k) < 30, s, -inf)", *ahead = "where(iota(k) + 37 >= iota(q), s, -inf)";
  const char *few_keys = "where(iota(k) < 40, s, -inf)", *turned = "where(iota(k) + iota(q) < q, s, -inf)";
  struct Row {
    GpuShape gpu;
    const char *precision, *mask;
    int64_t size, width;
    bool warps_skip;
  };
  const Row rows[] = {
      {ampere, "bf16", "s", 128, 32, false},           {ampere, "bf16", kCausal, 128, 64, false},
      {ampere, "tf32", window, 256, 32, false},        {ampere, "bf16", kCausal, 128, 128, true},
      {ampere, "bf16", few_keys, 128, 128, true},      {ampere, "bf16", turned, 256, 32, false},
      {ampere, "tf32", window, 256, 64, true},         {hopper, "bf16", kCausal, 128, 128, false},
      {hopper, "bf16", window, 256, 32, false},        {few_processors, "bf16", kCausal, 128, 64, true},
      {few_processors, "bf16", window, 256, 32, true}, {few_processors, "bf16", ahead, 256, 32, true},
  };
  for (const Row& row : rows) {
    const std::string text = program(kPlain, row.mask, row.precision);
    CAPTURE(text);
    CAPTURE(row.gpu.arch());
    const Work work = work_of(text, sizes(row.size, row.size, row.width, row.width), row.gpu);
    CHECK(work.counted == work.done);
    CHECK(work.warps_skip == row.warps_skip);
  }
}
