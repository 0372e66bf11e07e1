// SPDX-License-Identifier: Apache-2.0
// Parts of a program run one after another: they share streams, working memory and workspace, of the largest one's size. Values are each
// part's own.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/cuda_mesh.h"
#include "runtime/cuda/mesh_devices.h"
#include "runtime/cuda/staged_gpu.h"
#include "runtime/mesh/engine.h"

namespace einc {
namespace {

// Of what devices from the first on run; one after another.
struct WorkBytes {
  std::vector<int64_t> working;  // by device
  int64_t workspace = 0, packed = 0;
};
WorkBytes work_bytes(const MeshShape& mesh, const PerPart<MeshPlan>& plans, const PerPart<CudaMeshPart>& parts, int64_t first,
                     int64_t held) {
  WorkBytes bytes{std::vector<int64_t>(static_cast<size_t>(held), 0)};
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (!plans[part]) continue;
    const PipelinePlan* pipeline = plans[part]->pipeline.get();
    const auto runs = [&](const CudaExecutable& code, int64_t d) {
      int64_t& working = bytes.working[static_cast<size_t>(d)];
      working = std::max(working, code.program.own_bytes);
      bytes.workspace = std::max(bytes.workspace, code.workspace_bytes);
    };
    for (int64_t d = 0; d < held; ++d) {
      if (pipeline == nullptr) {
        runs(parts[part]->device, d);
        continue;
      }
      for (const CudaExecutable& round : parts[part]->stages[static_cast<size_t>(mesh.coordinate(first + d, pipeline->axis))])
        runs(round, d);
    }
    if (pipeline == nullptr) {
      bytes.packed = std::max(bytes.packed, packed_bytes(*plans[part], mesh, first, first + held));
      continue;
    }
    const StageBlocks blocks = blocks_of(mesh, *pipeline, mesh.devices() / held, first / held);
    const int64_t begin = blocks.stages > 1 ? 0 : first % blocks.devices;
    for (int64_t s = blocks.first(); s < blocks.last(); ++s)
      for (const StageRound& round : pipeline->stages[static_cast<size_t>(s)].rounds)
        bytes.packed = std::max(bytes.packed, packed_bytes(round.plan, mesh_of_stage(mesh, *pipeline), begin,
                                                           begin + blocks.held_devices(held), pipeline->axis));
  }
  return bytes;
}

std::string_view reduce_name(ReduceKind reduce) {
  static constexpr std::string_view kNames[] = {"sum", "max", "min", "prod", "any", "all"};
  return kNames[static_cast<size_t>(reduce)];
}

}  // namespace

std::string sum_function(ReduceKind reduce, DType dtype, int64_t terms) {
  return fmt::format("{}_{}_{}", reduce_name(reduce), to_string(dtype), terms);
}

std::string scale_function(DType dtype) { return fmt::format("scale_{}", to_string(dtype)); }

std::string check_function(DType dtype) { return is_floating(dtype) ? fmt::format("check_{}", to_string(dtype)) : ""; }

CudaMeshProgram::CudaMeshProgram(ProgramInfo program, MeshShape mesh, PerPart<MeshPlan> plans, PerPart<CudaMeshPart> parts,
                                 const EincTransport* transport, Whole whole, FileCache& cache, int threads)
    : MeshProgram(std::move(program), std::move(mesh), std::move(plans), transport, std::move(whole)), cuda_(std::move(parts)) {
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (!cuda_[part]) continue;
    helpers_[part].emplace(cuda_[part]->helpers, cache, threads);
    const PipelinePlan* pipeline = MeshProgram::parts()[part]->pipeline.get();
    if (pipeline == nullptr) {
      kernels_[part].emplace(cuda_[part]->device, cache, threads);
      continue;
    }
    const StageBlocks blocks =
        blocks_of(this->mesh(), *pipeline, this->mesh().devices() / held(), transport == nullptr ? 0 : transport->rank);
    stages_[part].emplace(cuda_[part]->stages.size());
    for (size_t s = 0; s < pipeline->stages.size(); ++s)
      for (size_t r = 0; r < pipeline->stages[s].rounds.size(); ++r) {
        const auto number = static_cast<int64_t>(s);
        const bool runs = number >= blocks.first() && number < blocks.last() && !pipeline->stages[s].rounds[r].plan.values.empty();
        (*stages_[part])[s].push_back(runs ? std::make_unique<CudaKernels>(cuda_[part]->stages[s][r], cache, threads) : nullptr);
      }
  }
}

int64_t gpu_bytes_of(const MeshShape& mesh, const PerPart<MeshPlan>& plans, const PerPart<CudaMeshPart>& parts, int64_t first,
                     int64_t held) {
  const WorkBytes work = work_bytes(mesh, plans, parts, first, held);
  int64_t bytes = work.workspace + work.packed;
  for (const int64_t working : work.working) bytes += working;
  for (const std::optional<MeshPlan>& plan : plans)
    if (plan) bytes += plan->pipeline ? staged_gpu_bytes(mesh, *plan->pipeline, mesh.devices() / held, first / held) : plan->bytes * held;
  return bytes;
}

int64_t CudaMeshProgram::planned_bytes(int) const {
  return gpu_bytes_of(mesh(), parts(), cuda_, held() * (transport() == nullptr ? 0 : transport()->rank), held());
}

PerPart<std::unique_ptr<PartDevices>> CudaMeshProgram::devices(MeshEngine& engine, LentPool&, std::shared_ptr<ThreadPool>) const {
  const cuda::Gpu& gpu = cuda::Gpu::get();
  const cuda::GpuScope scope(gpu);
  const WorkBytes work = work_bytes(mesh(), parts(), cuda_, engine.first(), engine.held());
  const auto memory = [](int64_t bytes, const char* what) {
    return bytes == 0 ? nullptr : std::make_shared<const cuda::DeviceMemory>(cuda::allocate(bytes, what));
  };
  auto machine = std::make_shared<CudaMachine>(CudaMachine{&gpu,
                                                           engine,
                                                           std::make_shared<const cuda::OwnedStream>(cuda::make_stream()),
                                                           cuda::make_stream(),
                                                           {},
                                                           gemm_workspace(work.workspace),
                                                           memory(work.packed, "blocks of a mesh's values"),
                                                           transport() == nullptr ? nullptr : cuda::NcclTeam::get()});
  for (const int64_t bytes : work.working) machine->working.push_back(memory(bytes, "the memory that a mesh's launches work in"));
  PerPart<std::unique_ptr<PartDevices>> made;
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    const auto& plan = parts()[part];
    if (!plan) continue;
    if (plan->pipeline)
      made[part] = std::make_unique<StagedGpu>(StagedCode{*plan, *cuda_[part], *stages_[part], *helpers_[part]}, machine);
    else
      made[part] = std::make_unique<CudaDevices>(
          CudaMeshCode{*plan, cuda_[part]->device, *kernels_[part], cuda_[part]->helpers, *helpers_[part]}, machine);
  }
  return made;
}

}  // namespace einc
