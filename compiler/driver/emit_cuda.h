// SPDX-License-Identifier: Apache-2.0
// --emit=cuda, ptx and cubin: what a program is on NVIDIA GPUs. The first needs nothing else, the others NVRTC, none a GPU.
#pragma once
#include <string>

#include "compiler/driver/exit_status.h"
#include "compiler/pipeline/cuda_program.h"

namespace einc {

struct CudaRequest {
  std::string arch;
  std::string path;  // of the cubin; empty: none
};

// CUDA C++ of all functions, each with the launches that call it.
std::string cuda_text(const CudaExecutable& executable);
// Which matrices cuBLASLt multiplies for each contraction, or why not (--explain=gemm).
std::string explain_gemm(const CudaProgramText& program);
// Writes `kind` (cuda, ptx or cubin). Of a cubin the resources of each kernel are printed.
ExitStatus emit_cuda(const CudaExecutable& executable, const std::string& kind, const CudaRequest& request);

}  // namespace einc
