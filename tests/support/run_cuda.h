// SPDX-License-Identifier: Apache-2.0
// Runs a graph on the GPU of the tests and gives what the interpreter gives.
#pragma once
#include <algorithm>
#include <cmath>

#include "compiler/pipeline/cuda_program.h"
#include "runtime/cuda/cuda_executor.h"
#include "runtime/cuda/device.h"
#include "tests/support/guarded_gpu.h"
#include "tests/support/run_cpu.h"
#include "tests/support/test_gpu.h"

namespace einc {

constexpr int64_t kGuardedBytes = 1 << 18;  // a program of more memory takes too long

inline std::unique_ptr<CudaProgramText> compile_for_test_gpu(const Graph& graph, const Bindings& dims, RunMode mode, Scheduling scheduling,
                                                             LibraryLimits library = {INT64_MAX}) {
  use_test_gpu();
  CudaOptions cuda;
  cuda.gpu = cuda::Gpu::get().shape();
  cuda.mode = mode;
  cuda.scheduling = scheduling;
  cuda.library = library;
  cuda.attention = cuda::AttentionLibrary::get();  // of the environment
  return compile_for_cuda(graph, dims, cuda);
}

// In planned memory; where `among_guards`, small programs once more with guards between all buffers. Throws GuardHit when a kernel writes
// beside its buffers, or the runs differ in a bit.
inline CpuRun run_compiled(const CudaExecutable& program, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
                           const InterpretOptions& options, bool among_guards) {
  CudaKernels kernels(program, test_cubins(), 2);
  CudaExecutor machine(program, kernels);
  const CpuRun run = run_on(machine, program.program, inputs, params, states, options);
  if (!among_guards || program.program.memory_bytes > kGuardedBytes) return run;
  GuardedGpu guarded(program, kernels);
  if (!same_bits(run, run_on(guarded, program.program, inputs, params, states, options)))
    throw GuardHit("memory of its own gives another result");
  return run;
}

// Fused programs among guards too.
inline CpuRun run_cuda(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
                       const InterpretOptions& options = {}, Scheduling scheduling = Scheduling::all, LibraryLimits library = {INT64_MAX}) {
  const auto compiled = compile_for_test_gpu(graph, dims, options.mode, scheduling, library);
  return run_compiled(compiled->executable, inputs, params, states, options, !scheduling.leaves_out("fusion"));
}

// The distance of two tensors, of the length of the second: for formats so coarse that either way of summing decides between two numbers.
inline double distance(const Tensor& found, const Tensor& wanted) {
  double apart = 0, length = 0;
  for (int64_t i = 0; i < wanted.count(); ++i) {
    apart += std::pow(found.real_at(i) - wanted.real_at(i), 2);
    length += std::pow(wanted.real_at(i), 2);
  }
  return std::sqrt(apart / std::max(length, 1e-30));
}

}  // namespace einc
