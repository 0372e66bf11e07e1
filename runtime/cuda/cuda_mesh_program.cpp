// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "runtime/cuda/cuda_mesh.h"
#include "runtime/cuda/mesh_devices.h"
#include "runtime/mesh/engine.h"

namespace einc {
namespace {

// What stages run in on a device: one after another, of all parts.
int64_t working_bytes_of(const PerPart<CudaMeshPart>& parts) {
  int64_t bytes = 0;
  for (const std::optional<CudaMeshPart>& part : parts)
    for (size_t s = 0; part && s < part->stages.size(); ++s) bytes = std::max(bytes, part->stages[s].program.own_bytes);
  return bytes;
}

int64_t workspace_bytes_of(const PerPart<CudaMeshPart>& parts) {
  int64_t bytes = 0;
  for (const std::optional<CudaMeshPart>& part : parts)
    for (size_t s = 0; part && s < part->stages.size(); ++s) bytes = std::max(bytes, part->stages[s].workspace_bytes);
  return bytes;
}

std::string_view reduce_name(ReduceKind reduce) {
  static constexpr std::string_view kNames[] = {"sum", "max", "min", "prod", "any", "all"};
  return kNames[static_cast<size_t>(reduce)];
}

// Of the values of a part, blocks that are packed or received: as MeshMoves lays them out.
int64_t packed_bytes_of(const MeshPlan& plan, const MeshShape& mesh, int64_t first, int64_t last) {
  const auto holds = [&](int64_t device) { return device >= first && device < last; };
  int64_t most = 0;
  for (const MeshCollective& c : plan.collectives) {
    const CollectiveSteps steps = collective_steps(mesh, c, plan.values[c.from], plan.values[c.to]);
    int64_t bytes = 0;
    for (const Transfer& t : steps.terms)
      if (holds(t.from) ? t.source.rows > 1 : holds(t.to)) bytes += t.source.bytes();
    for (const Transfer& t : steps.moves)
      if (holds(t.from) ? t.source.rows > 1 : holds(t.to) && t.target.rows > 1) bytes += t.source.bytes();
    most = std::max(most, bytes);
  }
  return most;
}

}  // namespace

std::string sum_function(ReduceKind reduce, DType dtype, int64_t terms) {
  return fmt::format("{}_{}_{}", reduce_name(reduce), to_string(dtype), terms);
}

std::string check_function(DType dtype) {
  switch (dtype) {
    case DType::real:
    case DType::f64:
    case DType::f32:
    case DType::bf16:
    case DType::f16:
    case DType::f8e4m3:
    case DType::f8e5m2:
      return fmt::format("check_{}", to_string(dtype));
    case DType::i64:
    case DType::i32:
    case DType::u16:
    case DType::u8:
    case DType::boolean:
      return "";
  }
  return "";
}

CudaMeshProgram::CudaMeshProgram(ProgramInfo program, MeshShape mesh, PerPart<MeshPlan> plans, PerPart<CudaMeshPart> parts,
                                 const EincTransport* transport, Whole whole, FileCache& cache, int threads)
    : MeshProgram(std::move(program), std::move(mesh), std::move(plans), transport, std::move(whole)), cuda_(std::move(parts)) {
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (!cuda_[part]) continue;
    stages_[part].emplace();
    for (const CudaExecutable& stage : cuda_[part]->stages) stages_[part]->emplace_back(stage, cache, threads);
    helpers_[part].emplace(cuda_[part]->helpers, cache, threads);
  }
}

int64_t CudaMeshProgram::planned_bytes(int) const {
  int64_t bytes = working_bytes_of(cuda_);
  int64_t packed = 0;
  const int64_t first = held() * (transport() == nullptr ? 0 : transport()->rank);
  for (const std::optional<MeshPlan>& plan : parts()) {
    if (!plan) continue;
    bytes += plan->bytes;
    packed += packed_bytes_of(*plan, mesh(), first, first + held());
  }
  return bytes * held() + packed + workspace_bytes_of(cuda_);
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
        std::make_shared<const cuda::DeviceMemory>(cuda::allocate(working_bytes_of(cuda_), "the memory that a mesh's stages run in")));
  PerPart<std::unique_ptr<PartDevices>> made;
  for (size_t p = 0; p < kParts; ++p) {
    const Part part = static_cast<Part>(p);
    if (const auto& plan = parts()[part])
      made[part] = std::make_unique<CudaDevices>(CudaMeshCode{*plan, *cuda_[part], *stages_[part], *helpers_[part]}, machine);
  }
  return made;
}

}  // namespace einc
