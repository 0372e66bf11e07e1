// SPDX-License-Identifier: Apache-2.0
// A graph compiled for NVIDIA GPUs: dims bound, kernels formed, buffers planned, CUDA C++ made. Needs no GPU.
#pragma once
#include "compiler/codegen/cuda/cuda_code.h"
#include "compiler/fuse/planned_step.h"
#include "runtime/cuda/attention_library.h"

namespace einc {

struct CudaOptions {
  GpuShape gpu{};  // to plan for
  RunMode mode = RunMode::training;
  Scheduling scheduling = Scheduling::all;
  LibraryLimits library{};                            // which contractions are for cuBLASLt
  const cuda::AttentionLibrary* attention = nullptr;  // may compute attention instead of generated kernels
};

// Throws RuntimeFailure when the dims do not bind. With the kernels and buffers that it is made of.
struct CudaProgramText : FormedGraph {
  GpuShape gpu;
  CudaExecutable executable;
};
std::unique_ptr<CudaProgramText> compile_for_cuda(const Graph& graph, const Bindings& given, const CudaOptions& options);
std::unique_ptr<CudaProgramText> compile_for_cuda(const Graph&&, const Bindings&, const CudaOptions&) = delete;  // it refers to the graph

// Joined launches run in the place of the first of them; what an alternative does instead of several, in its own or in theirs.
std::vector<LaunchPlaces> launch_places(const CudaExecutable& executable);

// As compile_for_cuda does it. The memory is that of the device: what lies there of the program, and workspaces of libraries.
PlanStep plan_for_gpu(const CudaOptions& options);

}  // namespace einc
