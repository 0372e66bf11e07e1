// SPDX-License-Identifier: Apache-2.0
// NVIDIA's libraries, opened when they are first asked for: the one binary starts on any machine and says what is missing. They are
// looked for in $EINC_CUDA_PATH, among the system's libraries, below $CUDA_HOME, /usr/local/cuda, and in Python's packages.
#pragma once
#include <string>
#include <vector>

#include "runtime/cuda/cublaslt_api.h"
#include "runtime/cuda/driver_api.h"

namespace einc::cuda {

// Each throws RuntimeFailure (resource), naming the library or function that is missing and where it comes from; asked again, it looks
// again.
const DriverTable& driver();
const NvrtcTable& nvrtc();
const LtTable& cublaslt();
// Whether nvrtc() would return.
bool has_nvrtc();
// The versions of CUDA whose libraries work with a driver that takes CUDA up to `driver` (1000 x major + 10 x minor, as the driver counts;
// 0: there is no driver), the best first. A driver loads what libraries of its own major version or of an older one make.
std::vector<int> usable_cuda_versions(int driver);

// Throws RuntimeFailure (resource) unless the result is success: "cuMemAlloc: CUDA_ERROR_OUT_OF_MEMORY (out of memory)WHERE".
void check(Result result, const char* call, const std::string& where = "");
void check_nvrtc(Result result, const char* call);
void check_cublaslt(Result result, const char* call, const std::string& where = "");

}  // namespace einc::cuda

// EINC_CUDA(cuMemFree_v2, memory): the driver's function, checked.
#define EINC_CUDA(function, ...) ::einc::cuda::check(::einc::cuda::driver().function(__VA_ARGS__), #function)
#define EINC_NVRTC_CALL(function, ...) ::einc::cuda::check_nvrtc(::einc::cuda::nvrtc().function(__VA_ARGS__), #function)
#define EINC_CUBLASLT_CALL(function, ...) ::einc::cuda::check_cublaslt(::einc::cuda::cublaslt().function(__VA_ARGS__), #function)
