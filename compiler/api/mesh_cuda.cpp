// SPDX-License-Identifier: Apache-2.0
// Stages as CUDA. Launches of a GPU may run together, as one launch, one product with its epilogue or one call of a plug-in: what they read
// must be there before the first of them, and what they make is there behind the last.
#include "compiler/api/mesh_cuda.h"

#include <algorithm>
#include <thread>

#include "compiler/api/mesh_parts.h"
#include "compiler/codegen/cuda/mesh_text.h"
#include "compiler/pipeline/cuda_program.h"

namespace einc {
namespace {

std::vector<LaunchPlaces> launch_places(const CudaExecutable& executable) {
  std::vector<LaunchPlaces> places;
  for (uint32_t l = 0; l < executable.calls.size(); ++l) places.push_back({l, l});
  const auto together = [&](const std::vector<uint32_t>& launches) {
    LaunchPlaces all{UINT32_MAX, 0};
    for (const uint32_t l : launches) all = {std::min(all.first, places[l].first), std::max(all.last, places[l].last)};
    for (const uint32_t l : launches) places[l] = all;
  };
  for (uint32_t l = 0; l < executable.calls.size(); ++l)
    for (const uint32_t other : executable.calls[l].together) together({l, other});
  for (const CudaFusedProduct& fused : executable.fused) together(fused.parts);
  for (const CudaAttention& attention : executable.attention) together(attention.parts);
  return places;
}

// Reads from the first place of any launch between a value's readers on; what some launches make, behind the last place of any of them.
PlannedStage in_places(PlannedStage planned, const std::vector<LaunchPlaces>& places) {
  for (PlannedStage::Reading& reading : planned.reads) {
    const uint32_t first = reading.first, last = reading.last;
    for (uint32_t l = first; l <= last && l < places.size(); ++l)
      reading = {std::min(reading.first, places[l].first), std::max(reading.last, places[l].last)};
  }
  for (uint32_t& made : planned.makes) {
    const uint32_t launches = made;
    for (uint32_t l = 0; l < launches; ++l) made = std::max(made, places[l].last + 1);
  }
  return planned;
}

}  // namespace

std::shared_ptr<const CudaMeshProgram> cuda_mesh_program(const ProgramGraphs& graphs, const std::filesystem::path& cache_folder,
                                                         const Scheduling& scheduling, const EincTransport* transport) {
  const MeshShape mesh = mesh_shape(graphs);
  const ProgramInfo info = program_info(graphs);
  CudaOptions options;
  options.gpu = cuda::Gpu::get().shape();
  options.mode = RunMode::inference;
  options.attention = cuda::AttentionLibrary::get();
  options.scheduling = scheduling;
  options.scheduling.memory_limit.reset();  // as on the processor: held against the whole
  PerPart<MeshPlan> plans;
  PerPart<CudaMeshPart> parts;
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (!graphs.parts[part]) continue;
    CudaMeshPart& made = parts[part].emplace();
    plans[part] = plan_mesh(*graphs.parts[part], info, graphs.dims, [&](const DeviceStage& stage) {
      const auto text = compile_for_cuda(stage.graph, graphs.dims, options);
      std::vector<LaunchPlaces> places = launch_places(text->executable);
      PlannedStage planned = in_places(planned_stage(stage, *text), places);
      made.stages.push_back(std::move(text->executable));
      return CompiledStage{{{made.stages.back().program, {}}, {}, {}, std::move(places)}, std::move(planned)};
    });
    made.helpers = mesh_functions(*plans[part], mesh);
  }
  auto kept = std::make_shared<ProgramGraphs>();
  kept->parts = graphs.parts;
  kept->dims = graphs.dims;
  const auto whole = [kept, cache_folder] { return whole_cuda_program(*kept, cache_folder, Scheduling::unfused); };
  FileCache cache(cache_folder);
  return std::make_shared<CudaMeshProgram>(info, mesh, std::move(plans), std::move(parts), transport, whole, cache,
                                           static_cast<int>(std::thread::hardware_concurrency()));
}

}  // namespace einc
