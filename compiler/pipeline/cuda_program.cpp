// SPDX-License-Identifier: Apache-2.0
#include "compiler/pipeline/cuda_program.h"

#include <algorithm>

#include "compiler/codegen/cuda/verify_launches.h"
#include "runtime/base/check.h"
#include "runtime/base/debug.h"

namespace einc {
namespace {

// What a run takes beside its plan: scratch of kernels, workspaces of libraries.
BesidePlan besides_of(const BufferPlan& plan, const CudaExecutable& executable) {
  return {executable.program.memory_bytes - plan.total_bytes, executable.workspace_bytes, launch_places(executable)};
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

std::vector<LaunchPlaces> launch_places(const CudaExecutable& executable) {
  std::vector<LaunchPlaces> places;
  for (uint32_t l = 0; l < executable.calls.size(); ++l) places.push_back({l, l});
  for (uint32_t l = 0; l < executable.calls.size(); ++l)
    for (const uint32_t other : executable.calls[l].together) places[other] = {l, l};
  const auto instead = [&](const std::vector<uint32_t>& parts, uint32_t at) {
    for (const uint32_t l : parts) places[l] = {std::min(l, at), std::max(l, at)};
  };
  for (const CudaFusedProduct& fused : executable.fused) instead(fused.parts, fused.at);
  for (const CudaAttention& attention : executable.attention) instead(attention.parts, attention.at());
  return places;
}

std::unique_ptr<CudaProgramText> compile_for_cuda(const Graph& graph, const Bindings& given, const CudaOptions& options) {
  const auto code_of = [&](const FormedView& f) { return make_cuda_program(f.bound, f.list, f.plan, options.gpu); };
  const std::optional<MemoryLimit>& limit = options.scheduling.memory_limit;
  const auto besides = [&](const FormedView& f) {
    BesidePlan made = besides_of(f.plan, code_of(f));
    if (limit && !limit->of_device) made.bytes += 256;  // scratch begins at a multiple of 256 bytes, wherever another plan ends
    return made;
  };
  const ScheduleTarget target{gpu_passes(), cuda_target(options.gpu, options.library), asking(options.attention), besides};
  auto result = std::make_unique<CudaProgramText>(
      CudaProgramText{form_within_limit(graph, given, options.mode, options.scheduling, target), options.gpu, {}});
  result->executable = code_of(result->view());
  if (debug_level() < 1) return result;
  const std::string problem = verify_launches(result->executable, result->list);
  EINC_CHECK(problem.empty(), "the launches lose a value: {}", problem);
  return result;
}

PlanStep plan_for_gpu(const CudaOptions& options) {
  return [=](const Graph& graph, const Bindings& dims, RunMode mode, const CountDevice& of_device) {
    CudaOptions in_mode = options;
    in_mode.mode = mode;
    if (in_mode.scheduling.memory_limit) in_mode.scheduling.memory_limit->of_device = of_device;
    std::shared_ptr<const CudaProgramText> text = compile_for_cuda(graph, dims, in_mode);
    BesidePlan besides = besides_of(text->plan, text->executable);
    PlannedMemory memory = planned_memory(text->bound, text->list, text->plan, besides.bytes + besides.shared, 0);
    return PlannedStep{"cuda", std::move(text), std::move(memory), std::move(besides)};
  };
}

}  // namespace einc
