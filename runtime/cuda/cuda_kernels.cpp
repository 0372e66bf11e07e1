// SPDX-License-Identifier: Apache-2.0
#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/cuda/cuda_executor.h"

namespace einc {

CudaKernels::CudaKernels(const CudaExecutable& executable, FileCache& cache, int threads) {
  const cuda::Gpu& gpu = cuda::Gpu::current();
  const cuda::GpuScope scope(gpu);
  EINC_CHECK(executable.texts.size() == executable.program.functions.size(), "{} texts of {} functions", executable.texts.size(),
             executable.program.functions.size());
  for (const cuda::Cubin& cubin :
       cuda::compile_cubins(executable.prelude, executable.texts, cuda::code_for(gpu.shape().arch()), cache, threads)) {
    cuda::OwnedLibrary& library = libraries_.emplace_back();
    EINC_CUDA(cuLibraryLoadData, library.out(), cubin.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  kernels_.resize(executable.texts.size());
  for (size_t f = 0; f < kernels_.size(); ++f)
    EINC_CUDA(cuLibraryGetKernel, &kernels_[f], libraries_[f / cuda::kFunctionsPerCubin].get(), executable.program.functions[f].c_str());
  shared_bytes_.resize(kernels_.size());
  for (size_t l = 0; l < executable.calls.size(); ++l)
    if (!executable.calls[l].gemm && executable.program.launches[l].function != kNoFunction) {
      uint32_t& most = shared_bytes_[executable.program.launches[l].function];
      most = std::max(most, executable.calls[l].grid.shared_bytes);
    }
  for (size_t f = 0; f < executable.grids.size(); ++f) shared_bytes_[f] = std::max(shared_bytes_[f], executable.grids[f].shared_bytes);
}

void CudaKernels::prepare(const cuda::Gpu& gpu) const {
  for (size_t f = 0; f < kernels_.size(); ++f)
    if (shared_bytes_[f] > 0)
      EINC_CUDA(cuKernelSetAttribute, cuda::kMaxDynamicSharedBytes, static_cast<int>(shared_bytes_[f]), kernels_[f], gpu.device());
}

}  // namespace einc
