// SPDX-License-Identifier: Apache-2.0
// Parts of a program run one after another: they share streams, working memory and workspace, of the largest one's size. Values are each
// part's own.
#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/cuda_mesh.h"
#include "runtime/cuda/mesh_devices.h"
#include "runtime/mesh/engine.h"

namespace einc {
namespace {

// What launches work in on a device; parts run one after another.
int64_t working_bytes_of(const PerPart<CudaMeshPart>& parts) {
  int64_t bytes = 0;
  for (const std::optional<CudaMeshPart>& part : parts)
    if (part) bytes = std::max(bytes, part->device.program.own_bytes);
  return bytes;
}

int64_t workspace_bytes_of(const PerPart<CudaMeshPart>& parts) {
  int64_t bytes = 0;
  for (const std::optional<CudaMeshPart>& part : parts)
    if (part) bytes = std::max(bytes, part->device.workspace_bytes);
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

std::string check_function(DType dtype) { return is_floating(dtype) ? fmt::format("check_{}", to_string(dtype)) : ""; }

CudaMeshProgram::CudaMeshProgram(ProgramInfo program, MeshShape mesh, PerPart<MeshPlan> plans, PerPart<CudaMeshPart> parts,
                                 const EincTransport* transport, Whole whole, FileCache& cache, int threads)
    : MeshProgram(std::move(program), std::move(mesh), std::move(plans), transport, std::move(whole)), cuda_(std::move(parts)) {
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (!cuda_[part]) continue;
    kernels_[part].emplace(cuda_[part]->device, cache, threads);
    helpers_[part].emplace(cuda_[part]->helpers, cache, threads);
  }
}

int64_t gpu_bytes_of(const MeshShape& mesh, const PerPart<MeshPlan>& plans, const PerPart<CudaMeshPart>& parts, int64_t first,
                     int64_t held) {
  int64_t bytes = working_bytes_of(parts), packed = 0;
  for (const std::optional<MeshPlan>& plan : plans) {
    if (!plan) continue;
    bytes += plan->bytes;
    packed += packed_bytes(*plan, mesh, first, first + held);
  }
  return bytes * held + packed + workspace_bytes_of(parts);
}

int64_t CudaMeshProgram::planned_bytes(int) const {
  return gpu_bytes_of(mesh(), parts(), cuda_, held() * (transport() == nullptr ? 0 : transport()->rank), held());
}

PerPart<std::unique_ptr<PartDevices>> CudaMeshProgram::devices(MeshEngine& engine, LentPool&, std::shared_ptr<ThreadPool>) const {
  const cuda::Gpu& gpu = cuda::Gpu::get();
  const cuda::GpuScope scope(gpu);
  auto machine = std::make_shared<CudaMachine>(CudaMachine{&gpu,
                                                           mesh(),
                                                           engine.first(),
                                                           engine.last(),
                                                           std::make_shared<const cuda::OwnedStream>(cuda::make_stream()),
                                                           cuda::make_stream(),
                                                           {},
                                                           gemm_workspace(workspace_bytes_of(cuda_)),
                                                           transport() == nullptr ? nullptr : cuda::NcclTeam::get()});
  for (int64_t d = engine.first(); d < engine.last(); ++d)
    machine->working.push_back(
        std::make_shared<const cuda::DeviceMemory>(cuda::allocate(working_bytes_of(cuda_), "the memory that a mesh's launches work in")));
  PerPart<std::unique_ptr<PartDevices>> made;
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (const auto& plan = parts()[part])
      made[part] = std::make_unique<CudaDevices>(CudaMeshCode{*plan, *cuda_[part], *kernels_[part], *helpers_[part]}, machine);
  }
  return made;
}

}  // namespace einc
