// SPDX-License-Identifier: Apache-2.0
// A device's program as CUDA. Launches of a GPU may run together, as one launch, one product with its epilogue or one call of a plug-in:
// collectives start and are waited for by where each of them may run.
#include "compiler/api/mesh_cuda.h"

#include <algorithm>
#include <thread>

#include "compiler/api/mesh_parts.h"
#include "compiler/codegen/cuda/mesh_text.h"
#include "compiler/pipeline/cuda_program.h"

namespace einc {
namespace {

// Joined launches run in the place of the first of them; what an alternative does instead of several, in its own or in theirs.
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

PlannedDevice in_places(PlannedDevice planned, const std::vector<LaunchPlaces>& places) {
  for (std::vector<uint32_t>& readers : planned.reads)
    for (uint32_t& l : readers) l = places[l].first;
  for (std::vector<uint32_t>& makers : planned.makes)
    for (uint32_t& l : makers) l = places[l].last;
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
    plans[part] = plan_mesh(*graphs.parts[part], info, graphs.dims, [&](const DeviceProgram& program) {
      const auto text = compile_for_cuda(program.graph, graphs.dims, options);
      std::vector<LaunchPlaces> places = launch_places(text->executable);
      PlannedDevice planned = in_places(planned_device(program, *text), places);
      made.device = std::move(text->executable);
      return CompiledDevice{{{made.device.program, {}}, {}, std::move(places)}, std::move(planned)};
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
