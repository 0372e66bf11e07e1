// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/cuda_program.h"

#include <fmt/format.h>

#include "compiler/codegen/cuda/verify_launches.h"
#include "runtime/base/check.h"
#include "runtime/base/debug.h"
#include "runtime/base/failure.h"

namespace einc {
namespace {

// What a run takes beside its plan: scratch of kernels, workspaces of libraries.
int64_t bytes_besides(const CudaProgramText& text) {
  return text.executable.program.memory_bytes - text.plan.total_bytes + text.executable.workspace_bytes;
}

std::unique_ptr<CudaProgramText> compile_as_is(const Graph& graph, const Bindings& given, const CudaOptions& options) {
  const ScheduleTarget target{gpu_passes(), cuda_target(options.gpu, options.library_products)};
  auto result = std::make_unique<CudaProgramText>(
      CudaProgramText{form_graph(graph, given, options.mode, options.scheduling, target), options.gpu, {}});
  LibraryAttention attention;
  if (options.attention) {
    attention = find_library_attention(result->list, [&](const einc_attention_problem& problem) -> AttentionAnswer {
      const cuda::AttentionLibrary::Plan& plan = options.attention->plan(problem);
      if (!plan.plan) return {options.attention->name() + " refuses it: " + plan.refusal};
      return {"", static_cast<int64_t>(plan.workspace_bytes)};
    });
    place_buffers(*result, options.mode, held_by(attention, result->list));
  }
  result->executable = make_cuda_program(result->bound, result->list, result->plan, options.gpu, options.library_products, attention);
  if (debug_level() < 1) return result;
  const std::string problem = verify_launches(result->executable, result->list);
  EINC_CHECK(problem.empty(), "the launches lose a value: {}", problem);
  return result;
}

}  // namespace

std::unique_ptr<CudaProgramText> compile_for_cuda(const Graph& graph, const Bindings& given, const CudaOptions& options) {
  std::unique_ptr<CudaProgramText> made = compile_as_is(graph, given, options);
  const std::optional<MemoryLimit>& limit = options.scheduling.memory_limit;
  if (!limit || options.mode != RunMode::training) return made;
  // What makes values again (fuse/memory_limit) does not keep their bits here: NVRTC contracts products and sums as they stand in a kernel.
  const int64_t bytes = made->plan.total_bytes + bytes_besides(*made) + limit->taken;
  if (bytes > limit->bytes)
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("a training step takes {} bytes on this GPU: more than the limit of {} bytes; values are made again "
                                     "in the backward on processors alone so far; a smaller batch takes less",
                                     bytes, limit->bytes));
  return made;
}

PlanStep plan_for_gpu(const CudaOptions& options) {
  return [=](const Graph& graph, const Bindings& dims, RunMode mode) {
    CudaOptions in_mode = options;
    in_mode.mode = mode;
    std::shared_ptr<const CudaProgramText> text = compile_for_cuda(graph, dims, in_mode);
    const int64_t besides = bytes_besides(*text);
    PlannedMemory memory = planned_memory(text->bound, text->list, text->plan, besides, 0);
    return PlannedStep{"cuda", std::move(text), std::move(memory)};
  };
}

}  // namespace einc
