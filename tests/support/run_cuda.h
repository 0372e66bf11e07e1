// Runs a graph on the emulated GPU and gives what the interpreter gives.
#pragma once
#include "compiler/codegen/cuda/cuda_code.h"
#include "compiler/fuse/form_graph.h"
#include "runtime/cuda/cuda_executor.h"
#include "tests/support/emulated_gpu.h"
#include "tests/support/run_cpu.h"

namespace einc {

inline CpuRun run_cuda(const Graph& graph, const Bindings& dims, const TensorMap& inputs, const TensorMap& params, const TensorMap& states,
                       const InterpretOptions& options = {}, Fusion fusion = Fusion::for_gpu) {
  use_emulated_gpu();
  const FormedGraph formed = form_graph(graph, dims, options.mode, fusion);
  const CudaExecutable program = make_cuda_program(formed.bound, formed.list, formed.plan);
  CudaKernels kernels(program, emulated_cubins(), 2);
  CudaExecutor machine(program, kernels);
  return run_on(machine, program.program, inputs, params, states, options);
}

}  // namespace einc
