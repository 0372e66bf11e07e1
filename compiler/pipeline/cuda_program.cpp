#include "compiler/pipeline/cuda_program.h"

#include "compiler/codegen/cuda/verify_launches.h"
#include "runtime/base/check.h"
#include "runtime/base/debug.h"

namespace einc {
namespace {

constexpr int kMostTries = 3;

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
    attention = find_library_attention(result->list, result->roots, [&](const einc_attention_problem& problem) -> AttentionAnswer {
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
  for (int tries = 0; tries < kMostTries && made->plan.total_bytes + limit->taken + bytes_besides(*made) > limit->bytes; ++tries) {
    CudaOptions with_besides = options;
    with_besides.scheduling.memory_limit->taken = limit->taken + bytes_besides(*made);
    made = compile_as_is(graph, given, with_besides);
  }
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
