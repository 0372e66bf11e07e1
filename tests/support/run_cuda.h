// Runs a graph on the emulated GPU and gives what the interpreter gives.
#pragma once
#include "compiler/pipeline/cuda_program.h"
#include "runtime/cuda/cuda_executor.h"
#include "tests/support/test_gpu.h"
#include "tests/support/run_cpu.h"

namespace einc {

inline CpuRun run_cuda(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
                       const InterpretOptions& options = {}, Fusion fusion = Fusion::on, int64_t library_products = INT64_MAX) {
  use_test_gpu();
  CudaOptions cuda;
  cuda.mode = options.mode;
  cuda.fusion = fusion;
  cuda.library_products = library_products;
  const auto compiled = compile_for_cuda(graph, dims, cuda);
  const CudaExecutable& program = compiled->executable;
  CudaKernels kernels(program, test_cubins(), 2);
  CudaExecutor machine(program, kernels);
  return run_on(machine, program.program, inputs, params, states, options);
}

}  // namespace einc
