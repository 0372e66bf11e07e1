// SPDX-License-Identifier: Apache-2.0
// Whether cuDNN has a way to do the attention of programs as their tensors lie: asked for a GPU that is described in a file, so that none
// is needed; plans are checked, not run. Where the plug-in or cuDNN is missing this says so, and ctest that it is skipped.
#include <dlfcn.h>
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <cstdlib>
#include <optional>

#include "compiler/pipeline/cuda_program.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/base/failure.h"
#include "tests/support/test_gpu.h"

using namespace einc;

namespace {

#ifdef EINC_CUDNN_PLUGIN
// Which cuDNN looks for; its stub will do.
bool has_driver() {
#ifdef EINC_CUDA_STUB
  return dlopen("libcuda.so.1", RTLD_NOW | RTLD_GLOBAL) || dlopen(EINC_CUDA_STUB, RTLD_NOW | RTLD_GLOBAL);
#else
  return false;
#endif
}

const cuda::AttentionLibrary* cudnn() {
  static const std::unique_ptr<cuda::AttentionLibrary> library = []() -> std::unique_ptr<cuda::AttentionLibrary> {
    use_test_gpu();
    setenv("EINC_CUDNN_DEVICE", EINC_SOURCE_DIR "/tests/cuda/cudnn/h200.json", 1);
    try {
      if (has_driver()) return std::make_unique<cuda::AttentionLibrary>(EINC_CUDNN_PLUGIN);
      fmt::print("SKIPPED: neither NVIDIA's driver nor its stub is here\n");
    } catch (const RuntimeFailure& failure) {
      fmt::print("SKIPPED: {}\n", failure.what());
    }
    return nullptr;
  }();
  return library.get();
}
#else
const cuda::AttentionLibrary* cudnn() {
  fmt::print("SKIPPED: cuDNN's plug-in is not built (EINC_WITH_CUDNN)\n");
  return nullptr;
}
#endif

// What of a program's attention cuDNN takes, and what it says of the rest.
std::string taken(const std::string& file, const Bindings& dims, Policy precision, RunMode mode) {
  PipelineOptions options;
  options.dims = dims;
  options.precision = precision;
  options.roots = mode == RunMode::inference ? Roots::inference : Roots::step;
  const Compilation compilation = compile_file(file, options);
  REQUIRE(compilation.graph);
  CudaOptions cuda;
  cuda.mode = mode;
  cuda.attention = cudnn();
  const auto program = compile_for_cuda(*compilation.graph, dims, cuda);
  std::string text;
  for (const CudaAttention& call : program->executable.attention) text += cuda::to_string(call.problem) + "; ";
  for (const auto& [launch, refusal] : program->executable.attention_refusals) text += refusal + "; ";
  return text;
}

std::string both(const std::string& what) { return "forward " + what + "; backward " + what + "; "; }

}  // namespace

TEST_CASE("cuDNN takes the attention of GPT-2 and of Llama as they lie, in training") {
  if (!cudnn()) return;
  fmt::print("On {}\n", cudnn()->name());
  CHECK(taken("examples/gpt2.ein", {{"batch", 16}, {"seq", 1024}, {"vocab", 128}, {"layers", 1}}, Policy::bf16, RunMode::training) ==
        both("bf16 16 x 12:12 heads, 1024 queries, 1024 keys, 64:64 wide, causal"));
  CHECK(taken("examples/gpt2.ein", {{"batch", 2}, {"seq", 1000}, {"vocab", 128}, {"layers", 1}}, Policy::f16, RunMode::training) ==
        both("f16 2 x 12:12 heads, 1000 queries, 1000 keys, 64:64 wide, causal"));
  const Bindings llama{{"batch", 2},    {"seq", 512}, {"vocab", 128},  {"layers", 1},
                       {"embed", 1024}, {"heads", 8}, {"kv_heads", 2}, {"ffn", 128}};
  CHECK(taken("examples/llama.ein", llama, Policy::bf16, RunMode::training) ==
        both("bf16 2 x 8:2 heads, 512 queries, 512 keys, 128:128 wide, causal"));
}

TEST_CASE("cuDNN takes the attention that the benchmark measures, and such without a mask") {
  if (!cudnn()) return;
  const std::string folder = "tests/bench/cuda/programs/";
  for (const int64_t head : {64, 128})
    for (const int64_t groups : {1, 8}) {
      const Bindings dims{{"batch", 2}, {"heads", 4}, {"groups", groups}, {"seq", 2048}, {"head", head}};
      const std::string what = fmt::format("bf16 2 x {}:4 heads, 2048 queries, 2048 keys, {}:{} wide, causal", 4 * groups, head, head);
      CHECK(taken(folder + "attention.ein", dims, Policy::inherit, RunMode::inference) == "forward " + what + "; ");
      CHECK(taken(folder + "attention_step.ein", dims, Policy::inherit, RunMode::inference) == both(what));
    }
  for (const int64_t width : {64, 128})
    for (const int64_t direction : {EINC_ATTENTION_FORWARD, EINC_ATTENTION_BACKWARD}) {
      const einc_attention_steps rows{8 * 300 * width, width, 8 * width};
      einc_attention_problem problem{};
      problem.direction = direction, problem.dtype = EINC_ATTENTION_BF16, problem.keeps_log_sum = problem.deterministic = 1;
      problem.batch = 3, problem.query_heads = problem.key_heads = 8, problem.queries = problem.keys = 300;
      problem.head_size = problem.value_size = width, problem.scale = 0.125;
      problem.q = problem.k = problem.v = problem.o = problem.d_o = problem.d_q = problem.d_k = problem.d_v = rows;
      problem.log_sum = {8 * 300, 300, 1};
      CHECK(cudnn()->plan(problem).refusal == "");
    }
}

TEST_CASE("what cuDNN has no way for it refuses, with a reason") {
  if (!cudnn()) return;
  einc_attention_problem problem{};
  problem.direction = EINC_ATTENTION_FORWARD, problem.dtype = EINC_ATTENTION_BF16;
  problem.batch = 1, problem.query_heads = problem.key_heads = 2, problem.queries = problem.keys = 64;
  problem.head_size = problem.value_size = 100, problem.scale = 0.1;
  problem.q = problem.k = problem.v = problem.o = {12800, 6400, 100};
  const cuda::AttentionLibrary::Plan& plan = cudnn()->plan(problem);
  CHECK(plan.plan == nullptr);
  CHECK(plan.refusal.find("multiple of 8") != std::string::npos);
}
