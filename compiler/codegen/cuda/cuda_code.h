// A kernel list as an executable for NVIDIA GPUs: CUDA C++ of each kernel, how it is launched, buffers as planned.
#pragma once
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"
#include "runtime/cuda/cuda_executable.h"

namespace einc {

CudaExecutable make_cuda_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan);

}  // namespace einc
