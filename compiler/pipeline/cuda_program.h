// A graph compiled for NVIDIA GPUs: dims bound, kernels formed, buffers planned, CUDA C++ made. Needs no GPU.
#pragma once
#include "compiler/codegen/cuda/cuda_code.h"
#include "compiler/fuse/form_graph.h"

namespace einc {

// Throws RuntimeFailure when the dims do not bind.
CudaExecutable compile_for_cuda(const Graph& graph, const Bindings& given, RunMode mode, Fusion fusion = Fusion::for_gpu);

}  // namespace einc
