// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/cuda_program.h"

#include "compiler/codegen/cuda/verify_launches.h"
#include "runtime/base/check.h"
#include "runtime/base/debug.h"

namespace einc {
namespace {

// What a run takes beside its plan: scratch of kernels, workspaces of libraries.
int64_t bytes_besides(const BufferPlan& plan, const CudaExecutable& executable) {
  return executable.program.memory_bytes - plan.total_bytes + executable.workspace_bytes;
}

// The plug-in that may compute attention, if there is one.
AskLibrary asking(const cuda::AttentionLibrary* library) {
  if (!library) return {};
  return [library](const einc_attention_problem& problem) -> AttentionAnswer {
    const cuda::AttentionLibrary::Plan& plan = library->plan(problem);
    if (!plan.plan) return {library->name() + " refuses it: " + plan.refusal};
    return {"", static_cast<int64_t>(plan.workspace_bytes)};
  };
}

}  // namespace

std::unique_ptr<CudaProgramText> compile_for_cuda(const Graph& graph, const Bindings& given, const CudaOptions& options) {
  const ScheduleTarget target{gpu_passes(), cuda_target(options.gpu, options.library_products), asking(options.attention)};
  const auto code_of = [&](const FormedGraph& f) { return make_cuda_program(f.bound, f.list, f.plan, options.gpu); };
  // Scratch begins at a multiple of 256 bytes, wherever another plan ends.
  const auto besides = [&](const FormedGraph& f) { return bytes_besides(f.plan, code_of(f)) + 256; };
  auto result = std::make_unique<CudaProgramText>(
      CudaProgramText{form_within_limit(graph, given, options.mode, options.scheduling, target, besides), options.gpu, {}});
  result->executable = code_of(*result);
  if (debug_level() < 1) return result;
  const std::string problem = verify_launches(result->executable, result->list);
  EINC_CHECK(problem.empty(), "the launches lose a value: {}", problem);
  return result;
}

PlanStep plan_for_gpu(const CudaOptions& options) {
  return [=](const Graph& graph, const Bindings& dims, RunMode mode) {
    CudaOptions in_mode = options;
    in_mode.mode = mode;
    std::shared_ptr<const CudaProgramText> text = compile_for_cuda(graph, dims, in_mode);
    const int64_t besides = bytes_besides(text->plan, text->executable);
    PlannedMemory memory = planned_memory(text->bound, text->list, text->plan, besides, 0);
    return PlannedStep{"cuda", std::move(text), std::move(memory)};
  };
}

}  // namespace einc
