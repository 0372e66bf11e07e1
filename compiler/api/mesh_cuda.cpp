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
    std::vector<CudaExecutable> compiled;
    const CompileDevice compile = [&](const Localized& local, const DeviceProgram& program, const Bindings& dims) {
      return compile_device(part, options, count, local, program, dims, compiled.emplace_back());
    };
    const Graph& graph = *graphs.parts[part];
    if (graph.mesh.stages.any()) {
      StagedPlan staged = plan_stages(graph, part, info, graphs.dims, compile);
      made.helpers = mesh_functions(*staged.pipeline, mesh);
      auto next = compiled.begin();
      for (const PipelineStage& stage : staged.pipeline->stages) {
        std::vector<CudaExecutable>& rounds = made.stages.emplace_back();
        for (const StageRound& round : stage.rounds) rounds.push_back(round.plan.values.empty() ? CudaExecutable() : std::move(*next++));
      }
      plans[part] = std::move(staged.whole);
      return {};
    }
    plans[part] = plan_mesh(graph, info, graphs.dims, updates_of(part), compile);
    made.device = std::move(compiled.front());
    made.helpers = mesh_functions(*plans[part], mesh);
    return {plans[part]->bytes, made.device.program.own_bytes, made.device.workspace_bytes};
  }

  CompiledDevice compile_device(Part part, CudaOptions options, const CountPart& count, const Localized& local,
                                const DeviceProgram& program, const Bindings& dims, CudaExecutable& made) const {
    const CountDevice bytes = [&](const FormedView& formed, const BesidePlan& besides) {
      const DevicePlan device = plan_device(local, program, dims, formed, besides.places);
      return count({device.values.bytes, formed.plan.own_bytes + besides.bytes, besides.shared});
    };
    if (options.scheduling.memory_limit) options.scheduling.memory_limit->of_device = bytes;
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
  if (limit && has_stages(graphs)) throw Error(ErrorKind::program, "stages are not run under a limit of memory yet: reports predict them");
  CudaOptions options;
  options.gpu = cuda::Gpu::get().shape();
  options.attention = cuda::AttentionLibrary::get();
  options.library = library;
  options.scheduling = scheduling;
  options.scheduling.memory_limit.reset();
  CudaParts planner{graphs, info, mesh};
  PerPart<PartBytes> bytes;
  for (size_t p = 0; p < kParts; ++p)
    if (const Part part = static_cast<Part>(p); graphs.parts[part]) bytes[part] = planner.plan(part, options, {});
  if (limit) {
    const int64_t held = mesh.devices() / (transport == nullptr ? 1 : transport->size);
    plan_within(*limit, bytes, planner.most_bytes(held), held, [&](Part part, const MemoryLimit& own, const CountPart& count) {
      CudaOptions limited = options;
      limited.scheduling.memory_limit = own;
      return planner.plan(part, limited, count);
    });
  }
  auto kept = std::make_shared<ProgramGraphs>();
  kept->parts = graphs.parts;
  kept->dims = graphs.dims;
  const auto whole = [kept, cache_folder] { return whole_cuda_program(*kept, cache_folder, Scheduling::unfused); };
  FileCache cache(cache_folder);
  return std::make_shared<CudaMeshProgram>(info, mesh, std::move(planner.plans), std::move(planner.parts), transport, whole, cache,
                                           static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace einc
