// SPDX-License-Identifier: Apache-2.0
// Every kernel of the examples compiled for GPUs of four kinds, GPT-2 in bf16 for all that einc names: nothing spilled, registers and
// shared memory within what a processor has.
#include <doctest/doctest.h>
#include <fmt/format.h>

#include <algorithm>
#include <iostream>
#include <thread>

#include "compiler/pipeline/cuda_program.h"
#include "compiler/pipeline/pipeline.h"
#include "runtime/cuda/cubin.h"
#include "runtime/cuda/libraries.h"
#include "tests/support/sample.h"

using namespace einc;

namespace {

constexpr int kRegisters = 65536;  // of a processor

struct Model {
  const char* file;
  Policy precision;
  Bindings dims;
  std::vector<const char*> also{};  // GPUs beside kArchs
};

const char* const kArchs[] = {"sm_80", "sm_89", "sm_90", "sm_100"};
const std::vector<const char*> kOthers = {"sm_86", "sm_90a", "sm_120"};

const Model kModels[] = {
    {"two_layer.ein", Policy::f32, {{"batch", 64}}},
    {"mlp.ein", Policy::bf16, {{"batch", 64}}},
    {"mlp.ein", Policy::fp8, {{"batch", 64}, {"classes", 16}}},
    {"gpt2.ein", Policy::fp8, {{"batch", 2}, {"seq", 1024}, {"vocab", 50304}, {"layers", 2}}},
    {"cnn.ein", Policy::f32, {{"batch", 32}}},
    {"cnn.ein", Policy::bf16, {{"batch", 256}}},
    {"cnn.ein", Policy::tf32, {{"batch", 256}}},
    {"attention.ein", Policy::bf16, {{"batch", 8}, {"seq", 256}}},
    {"gpt2.ein", Policy::bf16, {{"batch", 4}, {"seq", 1024}}, kOthers},
    {"gpt2.ein", Policy::f32, {{"batch", 4}, {"seq", 1024}}},
    {"gpt2.ein", Policy::tf32, {{"batch", 4}, {"seq", 1024}}},
    {"gpt2.ein", Policy::bf16, {{"batch", 1}, {"seq", 512}, {"layers", 1}, {"heads", 6}, {"head", 128}}, kOthers},
    {"llama.ein", Policy::bf16, {{"batch", 1}, {"seq", 512}, {"layers", 2}}},
};

// Kernels of launches that run after the first step only if gradients are huge may spill a little.
constexpr int kRareSpill = 256;
// Seen in the machine code (NVRTC 13.0): a register of the path that ptxas adds for diverged warps (BRA.DIV, behind the kernel's EXIT),
// which no warp takes, in attention with heads of 32 for sm_90, whose loops hold no STL or LDL; and a pair of registers stored and loaded
// once a row, in the norm of rows of 768 f32 for sm_80, which ptxas gives 72 registers a thread.
constexpr int kSpill = 8;

std::string over_budget(const CudaExecutable& executable, const cuda::KernelUse& use, int64_t shared) {
  bool rare = true;
  for (size_t i = 0; i < executable.calls.size(); ++i) {
    if (executable.calls[i].gemm || executable.program.functions[executable.program.launches[i].function] != use.name) continue;
    rare = rare && executable.program.launches[i].when == LaunchWhen::unbounded;
    const CudaGrid& grid = executable.calls[i].grid;
    const int threads = static_cast<int>(grid.threads[0] * grid.threads[1] * grid.threads[2]);
    const int bytes = use.shared_bytes + static_cast<int>(grid.shared_bytes);
    if (use.registers * threads > kRegisters) return fmt::format("{} registers for {} threads", use.registers, threads);
    if (bytes > shared) return fmt::format("{} bytes of shared memory", bytes);
  }
  return std::max(use.spill_store_bytes, use.spill_load_bytes) > (rare ? kRareSpill : kSpill)
             ? fmt::format("{} bytes spilled", use.spill_store_bytes)
             : "";
}

}  // namespace

TEST_CASE("kernels of the examples stay within their budgets") {
  if (!cuda::has_nvrtc()) {
    std::cout << "SKIPPED: there is no NVRTC here, so no kernel was compiled for a GPU\n";
    return;
  }
  FileCache cache(std::filesystem::temp_directory_path() / "einc-test-cubins");
  const int threads = static_cast<int>(std::max(1u, std::thread::hardware_concurrency()));
  const Sample sample(6);
  for (size_t number = 0; number < std::size(kModels); ++number) {
    if (!sample.takes(number)) continue;
    const Model& model = kModels[number];
    PipelineOptions options;
    options.dims = model.dims;
    options.precision = model.precision;
    const Compilation compilation = compile_file(std::string(EINC_SOURCE_DIR "/examples/") + model.file, options);
    REQUIRE(compilation.graph.has_value());
    std::vector<const char*> archs(std::begin(kArchs), std::end(kArchs));
    archs.insert(archs.end(), model.also.begin(), model.also.end());
    for (const char* arch : archs) {
      CudaOptions cuda_options;
      cuda_options.gpu = gpu_shape_of_arch(arch).value();
      const auto program = compile_for_cuda(*compilation.graph, model.dims, cuda_options);
      const CudaExecutable& executable = program->executable;
      const std::string file = model.file, gpu = arch;
      CAPTURE(file);
      CAPTURE(gpu);
      size_t kernels = 0;
      for (const cuda::Cubin& cubin : cuda::compile_cubins(executable.prelude, executable.texts, arch, cache, threads))
        for (const cuda::KernelUse& use : cubin.kernels) {
          CAPTURE(use.name);
          CHECK(over_budget(executable, use, cuda_options.gpu.block_shared_bytes) == "");
          ++kernels;
        }
      CHECK(kernels == executable.texts.size());
    }
  }
}
