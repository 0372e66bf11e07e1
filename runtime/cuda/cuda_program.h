// SPDX-License-Identifier: Apache-2.0
// A program compiled for the GPU, by part.
#pragma once
#include "runtime/cuda/cuda_executor.h"
#include "runtime/executor/session.h"

namespace einc {

class CudaProgram : public ProgramRep {
 public:
  // Opens the GPU and compiles what the cache has not, on so many threads. Throws RuntimeFailure (resource).
  CudaProgram(ProgramInfo program, PerPart<CudaExecutable> parts, FileCache& cache, int threads);
  // A runner's memory on the GPU: sources at once, each part's own when the part first runs; steps and micro-batches use the same.
  std::unique_ptr<Runner> start(std::shared_ptr<ThreadPool> pool, int device) const override;
  int64_t planned_bytes(int threads) const override;  // of the GPU
  bool has(Part part) const override { return parts_[part].has_value(); }

 private:
  PerPart<CudaExecutable> parts_;
  PerPart<CudaKernels> kernels_;
  GpuShape shape_;  // that it is compiled for
};

}  // namespace einc
