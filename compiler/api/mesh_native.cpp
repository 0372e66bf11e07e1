// SPDX-License-Identifier: Apache-2.0
// A device's program as machine code.
#include "compiler/api/mesh_native.h"

#include "compiler/api/mesh_limit.h"
#include "compiler/api/mesh_stages.h"
#include "compiler/pipeline/cpu_program.h"
#include "runtime/base/check.h"
#include "runtime/mesh/host_devices.h"

namespace einc {
namespace {

// Keeps the code that its functions lie in.
class MeshCompiledHere : public MeshProgram {
 public:
  MeshCompiledHere(ProgramInfo program, MeshShape mesh, PerPart<MeshPlan> parts, const EincTransport* transport, Whole whole,
                   std::vector<NativeCode> code)
      : MeshProgram(std::move(program), std::move(mesh), std::move(parts), transport, std::move(whole)), code_(std::move(code)) {}

 private:
  std::vector<NativeCode> code_;
};

// Parts as they are planned; machine code is made of the last plan of each.
struct NativeParts {
  const ProgramGraphs& graphs;
  const ProgramInfo& info;
  const int threads;
  PerPart<MeshPlan> plans{};
  PerPart<std::shared_ptr<PipelinePlan>> pipelines{};
  PerPart<std::vector<std::unique_ptr<LoweredGraph>>> lowered{};  // of a pipeline as plan_stages compiles them

  PartBytes plan(Part part, const CpuOptions& options, const CountPart& count) {
    lowered[part].emplace();
    plans[part] = plan_mesh(*graphs.parts[part], info, graphs.dims, updates_of(part),
                            [&](const Localized& local, const DeviceProgram& program, const Bindings& dims) {
                              const auto bytes = [&](const DevicePlan& planned, const RoundWork& work) {
                                return count({planned.values.bytes, work.working, work.shared});
                              };
                              return compiled(part, options, bytes, local, program, dims);
                            });
    return {plans[part]->bytes, working_bytes(*plans[part], threads), 0};
  }

  // `limits`: none: all as it is.
  void plan_stages(Part part, const CpuOptions& options, const StageLimits& limits) {
    lowered[part].emplace();
    StagedPlan staged =
        einc::plan_stages(*graphs.parts[part], part, info, graphs.dims,
                          [&](size_t stage, size_t round, const Localized& local, const DeviceProgram& program, const Bindings& dims) {
                            const StageLimit* limit = limit_of(limits, stage, round);
                            CpuOptions own = options;
                            if (limit != nullptr) own.scheduling.memory_limit = limit->limit;
                            return compiled(
                                part, own, [&](const DevicePlan& planned, const RoundWork& work) { return limit->bytes(planned, work); },
                                local, program, dims);
                          });
    plans[part] = std::move(staged.whole), pipelines[part] = std::move(staged.pipeline);
  }

  RoundWork work_of(Part part, size_t stage, size_t round) const {
    return {working_bytes(plans[part]->pipeline->stages[stage].rounds[round].plan, threads), 0};
  }

  // `bytes`: of a choice under the limit that options have.
  CompiledDevice compiled(Part part, CpuOptions options, const std::function<int64_t(const DevicePlan&, const RoundWork&)>& bytes,
                          const Localized& local, const DeviceProgram& program, const Bindings& dims) {
    if (options.scheduling.memory_limit)
      options.scheduling.memory_limit->of_device = [&](const FormedView& formed, const BesidePlan& besides) {
        return bytes(plan_device(local, program, dims, formed, {}), {formed.plan.own_bytes + besides.bytes, besides.shared});
      };
    options.mode = mode_of(local.stores);
    const LoweredGraph& made =
        *lowered[part]->emplace_back(lower_graph(program.graph, dims_of_part(*graphs.parts[part], part, graphs.dims), options));
    return {{{made.lowered.program, {}}}, plan_device(local, program, dims, made.view(), {})};
  }

  // The plans that a part's lowered graphs are of, in their order.
  std::vector<MeshPlan*> with_code(Part part) {
    if (!pipelines[part]) return {&*plans[part]};
    std::vector<MeshPlan*> list;
    for (PipelineStage& stage : (*pipelines[part])->stages)
      for (StageRound& round : stage.rounds)
        if (!round.plan.values.empty()) list.push_back(&round.plan);
    return list;
  }
};

}  // namespace

std::shared_ptr<const MeshProgram> mesh_program(const ProgramGraphs& graphs, const std::filesystem::path& cache_folder,
                                                const Scheduling& scheduling, const EincTransport* transport) {
  const ProgramInfo info = program_info(graphs);
  const std::optional<MemoryLimit>& limit = scheduling.memory_limit;
  CpuOptions options;
  options.scheduling = scheduling;
  options.scheduling.memory_limit.reset();
  NativeParts planner{graphs, info, limit ? limit->threads : 1};
  const MeshShape mesh = mesh_shape(graphs);
  const auto as_planned = [&] { return MeshProgram(info, mesh, planner.plans, transport); };
  const int processes = transport == nullptr ? 1 : transport->size;
  if (has_stages(graphs))
    plan_pipelines(graphs, limit, [&](Part part, const StageLimits& limits) { planner.plan_stages(part, options, limits); },
                   {mesh, planner.plans, processes, [&](int64_t rank) { return as_planned().bytes_of(planner.threads, rank); },
                    [&](Part part, size_t stage, size_t round) { return planner.work_of(part, stage, round); }});
  else
    plan_parts(
        graphs, limit, mesh.devices() / processes,
        [&](Part part, const std::optional<MemoryLimit>& own, const CountPart& count) {
          CpuOptions limited = options;
          limited.scheduling.memory_limit = own;
          return planner.plan(part, limited, count);
        },
        [&] { return as_planned().most_planned_bytes(planner.threads); });
  FileCache cache(cache_folder);
  std::vector<NativeCode> code;
  for (size_t p = 0; p < kParts; ++p)
    if (const Part part = static_cast<Part>(p); planner.lowered[part]) {
      const std::vector<MeshPlan*> plans = planner.with_code(part);
      EINC_CHECK(plans.size() == planner.lowered[part]->size(), "a stage's round has no code");
      for (size_t i = 0; i < plans.size(); ++i) {
        code.push_back(compile_native((*planner.lowered[part])[i]->lowered, cache));
        plans[i]->code.compute.functions = code.back().functions;
      }
    }
  auto kept = std::make_shared<ProgramGraphs>();
  kept->parts = graphs.parts;
  kept->dims = graphs.dims;
  const auto whole = [kept, cache_folder] { return whole_program(*kept, cache_folder, Scheduling::unfused); };
  return std::make_shared<MeshCompiledHere>(info, mesh, std::move(planner.plans), transport, whole, std::move(code));
}

}  // namespace einc
