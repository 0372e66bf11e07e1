// SPDX-License-Identifier: Apache-2.0
// A device's program as CUDA. Launches of a GPU may run together, as one launch, one product with its epilogue or one call of a plug-in:
// collectives start and are waited for by where each of them may run.
#include "compiler/api/mesh_cuda.h"

#include <algorithm>
#include <thread>

#include "compiler/api/mesh_limit.h"
#include "compiler/api/mesh_parts.h"
#include "compiler/api/mesh_stages.h"
#include "compiler/codegen/cuda/mesh_text.h"
#include "compiler/pipeline/cuda_program.h"

namespace einc {
namespace {

struct CudaParts {
  const ProgramGraphs& graphs;
  const ProgramInfo& info;
  const MeshShape& mesh;
  PerPart<MeshPlan> plans{};
  PerPart<CudaMeshPart> parts{};

  PartBytes plan(Part part, const CudaOptions& options, const CountPart& count) {
    CudaMeshPart& made = parts[part].emplace();
    plans[part] = plan_mesh(*graphs.parts[part], info, graphs.dims, updates_of(part),
                            [&](const Localized& local, const DeviceProgram& program, const Bindings& dims) {
                              const auto bytes = [&](const DevicePlan& planned, const RoundWork& work) {
                                return count({planned.values.bytes, work.working, work.shared});
                              };
                              return compiled(part, options, bytes, local, program, dims, made.device);
                            });
    made.helpers = mesh_functions(*plans[part], mesh);
    return {plans[part]->bytes, made.device.program.own_bytes, made.device.workspace_bytes};
  }

  // `limits`: none: all as it is.
  void plan_stages(Part part, const CudaOptions& options, const StageLimits& limits) {
    CudaMeshPart& made = parts[part].emplace();
    // Rounds that have nothing to do are not compiled, but have a place, too.
    const auto place = [&](size_t stage, size_t round) -> CudaExecutable& {
      if (made.stages.size() <= stage) made.stages.resize(stage + 1);
      if (made.stages[stage].size() <= round) made.stages[stage].resize(round + 1);
      return made.stages[stage][round];
    };
    StagedPlan staged = einc::plan_stages(
        *graphs.parts[part], part, info, graphs.dims,
        [&](size_t stage, size_t round, const Localized& local, const DeviceProgram& program, const Bindings& dims) {
          const StageLimit* limit = limit_of(limits, stage, round);
          CudaOptions own = options;
          if (limit != nullptr) own.scheduling.memory_limit = limit->limit;
          const auto bytes = [&](const DevicePlan& planned, const RoundWork& work) { return limit->bytes(planned, work); };
          return compiled(part, own, bytes, local, program, dims, place(stage, round));
        });
    for (size_t s = 0; s < staged.pipeline->stages.size(); ++s) place(s, staged.pipeline->stages[s].rounds.size() - 1);
    made.helpers = mesh_functions(*staged.pipeline, mesh);
    plans[part] = std::move(staged.whole);
  }

  RoundWork work_of(Part part, size_t stage, size_t round) const {
    const CudaExecutable& code = parts[part]->stages[stage][round];
    return {code.program.own_bytes, code.workspace_bytes};
  }

  // `bytes`: of a choice under the limit that options have.
  CompiledDevice compiled(Part part, CudaOptions options, const std::function<int64_t(const DevicePlan&, const RoundWork&)>& bytes,
                          const Localized& local, const DeviceProgram& program, const Bindings& dims, CudaExecutable& made) const {
    if (options.scheduling.memory_limit)
      options.scheduling.memory_limit->of_device = [&](const FormedView& formed, const BesidePlan& besides) {
        return bytes(plan_device(local, program, dims, formed, besides.places), {formed.plan.own_bytes + besides.bytes, besides.shared});
      };
    options.mode = mode_of(local.stores);
    const auto text = compile_for_cuda(program.graph, dims_of_part(*graphs.parts[part], part, graphs.dims), options);
    std::vector<LaunchPlaces> places = launch_places(text->executable);
    DevicePlan device = plan_device(local, program, dims, text->view(), places);
    made = std::move(text->executable);
    return {{{made.program, {}}, {}, std::move(places)}, std::move(device)};
  }

  // Of the process that takes the most.
  int64_t most_bytes(int64_t held) const {
    int64_t most = 0;
    for (int64_t first = 0; first < mesh.devices(); first += held) most = std::max(most, gpu_bytes_of(mesh, plans, parts, first, held));
    return most;
  }
};

}  // namespace

std::shared_ptr<const CudaMeshProgram> cuda_mesh_program(const ProgramGraphs& graphs, const std::filesystem::path& cache_folder,
                                                         const Scheduling& scheduling, const EincTransport* transport,
                                                         const LibraryLimits& library) {
  const MeshShape mesh = mesh_shape(graphs);
  const ProgramInfo info = program_info(graphs);
  const std::optional<MemoryLimit>& limit = scheduling.memory_limit;
  CudaOptions options;
  options.gpu = cuda::Gpu::get().shape();
  options.attention = cuda::AttentionLibrary::get();
  options.library = library;
  options.scheduling = scheduling;
  options.scheduling.memory_limit.reset();
  CudaParts planner{graphs, info, mesh};
  const int64_t held = mesh.devices() / (transport == nullptr ? 1 : transport->size);
  if (has_stages(graphs))
    plan_pipelines(graphs, limit, [&](Part part, const StageLimits& limits) { planner.plan_stages(part, options, limits); },
                   {mesh, planner.plans, mesh.devices() / held,
                    [&](int64_t rank) { return gpu_bytes_of(mesh, planner.plans, planner.parts, rank * held, held); },
                    [&](Part part, size_t stage, size_t round) { return planner.work_of(part, stage, round); }});
  else
    plan_parts(
        graphs, limit, held,
        [&](Part part, const std::optional<MemoryLimit>& own, const CountPart& count) {
          CudaOptions limited = options;
          limited.scheduling.memory_limit = own;
          return planner.plan(part, limited, count);
        },
        [&] { return planner.most_bytes(held); });
  auto kept = std::make_shared<ProgramGraphs>();
  kept->parts = graphs.parts;
  kept->dims = graphs.dims;
  const auto whole = [kept, cache_folder] { return whole_cuda_program(*kept, cache_folder, Scheduling::unfused); };
  FileCache cache(cache_folder);
  return std::make_shared<CudaMeshProgram>(info, mesh, std::move(planner.plans), std::move(planner.parts), transport, whole, cache,
                                           static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace einc
