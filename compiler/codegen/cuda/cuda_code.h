// SPDX-License-Identifier: Apache-2.0
// A kernel list as an executable for NVIDIA GPUs: CUDA C++ of each kernel, how it is launched, buffers as planned.
#pragma once
#include "compiler/codegen/cuda/library_attention.h"
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"
#include "compiler/lower/kernel_target.h"
#include "runtime/base/gpu_shape.h"
#include "runtime/cuda/cuda_executable.h"

namespace einc {

// What kernels are formed for. Contractions of at least `library_products` products are cuBLASLt's where they map to it.
KernelTarget cuda_target(const GpuShape& gpu, int64_t library_products);

// How a kernel multiplies what is f32: in tf32 where the policy of all that it contracts says so.
CudaSums f32_products(const BoundGraph& graph, const GraphKernel& kernel);

CudaExecutable make_cuda_program(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, const GpuShape& gpu,
                                 int64_t library_products, const LibraryAttention& attention = {});

}  // namespace einc
