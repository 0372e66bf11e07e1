// SPDX-License-Identifier: Apache-2.0
// A program over a mesh whose devices are GPUs; those of one process share a GPU, each with memory of its own. What one device computes, in
// which order, and what is summed how does not depend on that.
#pragma once
#include "runtime/cuda/cuda_executor.h"
#include "runtime/mesh/mesh_program.h"
#include "runtime/mesh/pipeline_plan.h"

namespace einc {

// Beside a MeshPlan.
struct CudaMeshPart {
  CudaExecutable device;   // whose program is MeshPlan::code's
  CudaExecutable helpers;  // functions of no launch: sums of collectives, means, and looks at what is to be stored
  // Of a pipeline, by stage and round, in place of `device`; without launches where the round has nothing to do.
  std::vector<std::vector<CudaExecutable>> stages{};
};

// "sum_f32_4": combines four terms. `extern "C" __global__ void NAME(const u64* terms, T* result, i64 count)`: where the terms lie, in the
// order of the tree.
std::string sum_function(ReduceKind reduce, DType dtype, int64_t terms);
// "check_f32": `extern "C" __global__ void NAME(const T* next, const T* old, i64 count, i32* found)`: found[0] becomes 1 where an element
// is no number, found[1] where one may not be stored in the place of the old one. Empty for dtypes that hold numbers only.
std::string check_function(DType dtype);
// "scale_f32": `extern "C" __global__ void NAME(T* values, i64 count, f64 by)`.
std::string scale_function(DType dtype);
inline constexpr uint32_t kHelperThreads = 256;  // of a block

// Of a GPU that holds so many devices of the mesh from the first on.
int64_t gpu_bytes_of(const MeshShape& mesh, const PerPart<MeshPlan>& plans, const PerPart<CudaMeshPart>& parts, int64_t first,
                     int64_t held);

class CudaMeshProgram : public MeshProgram {
 public:
  // Opens the GPU and compiles what the cache has not, on so many threads. `transport`: null where this process has all devices; else
  // NcclTeam is open. Throws RuntimeFailure (resource).
  CudaMeshProgram(ProgramInfo program, MeshShape mesh, PerPart<MeshPlan> plans, PerPart<CudaMeshPart> parts, const EincTransport* transport,
                  Whole whole, FileCache& cache, int threads);
  int64_t planned_bytes(int threads) const override;  // of the GPU
  PerPart<std::unique_ptr<PartDevices>> devices(MeshEngine& engine, LentPool& lent, std::shared_ptr<ThreadPool> pool) const override;

  const PerPart<CudaMeshPart>& code() const { return cuda_; }

 private:
  PerPart<CudaMeshPart> cuda_;
  PerPart<CudaKernels> kernels_, helpers_;
  PerPart<std::vector<std::vector<std::unique_ptr<CudaKernels>>>> stages_;  // as CudaMeshPart's; of this process' stages
};

}  // namespace einc
