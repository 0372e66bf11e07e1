// SPDX-License-Identifier: Apache-2.0
// Runs a program on the GPU with every buffer in a place of its own between guards, which are looked at after each launch: in the arena a
// kernel that writes beside its buffer would hit another one, unseen as often as not.
#pragma once
#include "runtime/cuda/cuda_executor.h"
#include "tests/support/guarded_machine.h"

namespace einc {

// In the way of CudaExecutor.
class GuardedGpu {
 public:
  GuardedGpu(const CudaExecutable& executable, const CudaKernels& kernels);

  int find(BufferRole role, const std::string& name) const { return executor_.find(role, name); }
  void set(uint32_t buffer, const HostArray& array) { executor_.set(buffer, array); }
  HostArray get(uint32_t buffer) { return executor_.get(buffer); }
  // Throws GuardHit, which names the launch, and as CudaExecutor::run.
  void run(uint64_t seed, uint64_t step);

 private:
  static CudaExecutable with_guards(CudaExecutable executable);
  void check(size_t launch);

  const CudaExecutable executable_;  // its last buffer is all of the memory
  CudaExecutor executor_;
};

}  // namespace einc
