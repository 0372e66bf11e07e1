#include <fmt/format.h>

#include <algorithm>

#include "runtime/base/check.h"
#include "runtime/cuda/cuda_executor.h"

namespace einc {

CudaKernels::CudaKernels(const CudaExecutable& executable, FileCache& cache, int threads) {
  const cuda::Gpu& gpu = cuda::Gpu::get();
  gpu.make_current();
  EINC_CHECK(executable.texts.size() == executable.program.functions.size(), "{} texts of {} functions", executable.texts.size(),
             executable.program.functions.size());
  for (const cuda::Cubin& cubin : cuda::compile_cubins(executable.prelude, executable.texts, gpu.shape().arch(), cache, threads)) {
    cuda::OwnedLibrary& library = libraries_.emplace_back();
    EINC_CUDA(cuLibraryLoadData, library.out(), cubin.code.data(), nullptr, nullptr, 0, nullptr, nullptr, 0);
  }
  kernels_.resize(executable.texts.size());
  for (size_t f = 0; f < kernels_.size(); ++f)
    EINC_CUDA(cuLibraryGetKernel, &kernels_[f], libraries_[f / cuda::kFunctionsPerCubin].get(), executable.program.functions[f].c_str());
  std::vector<uint32_t> shared(kernels_.size());
  for (size_t l = 0; l < executable.calls.size(); ++l)
    if (!executable.calls[l].gemm && executable.program.launches[l].scan < 0) {
      uint32_t& most = shared[executable.program.launches[l].function];
      most = std::max(most, executable.calls[l].grid.shared_bytes);
    }
  for (size_t f = 0; f < executable.grids.size(); ++f) shared[f] = std::max(shared[f], executable.grids[f].shared_bytes);
  for (size_t f = 0; f < kernels_.size(); ++f)
    if (shared[f] > 0)
      EINC_CUDA(cuKernelSetAttribute, cuda::kMaxDynamicSharedBytes, static_cast<int>(shared[f]), kernels_[f], gpu.device());
}

}  // namespace einc
