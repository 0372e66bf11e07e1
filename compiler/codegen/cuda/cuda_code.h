// SPDX-License-Identifier: Apache-2.0
// A kernel list as an executable for NVIDIA GPUs: CUDA C++ of each kernel, how it is launched, calls of libraries and buffers as planned.
#pragma once
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"
#include "compiler/lower/kernel_target.h"
#include "runtime/base/gpu_shape.h"
#include "runtime/cuda/cuda_executable.h"

namespace einc {

// What kernels are formed for. Contractions within the limits are cuBLASLt's where they map to it.
KernelTarget cuda_target(const GpuShape& gpu, const LibraryLimits& library);

CudaExecutable make_cuda_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const GpuShape& gpu);

}  // namespace einc
