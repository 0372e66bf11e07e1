// SPDX-License-Identifier: Apache-2.0
// The types, numbers and arguments that runtime/cuda declares for itself are those of NVIDIA's headers. Compared while this is compiled,
// where a toolkit has them.
#include <doctest/doctest.h>

// Theirs first: names of functions are macros there, which hold for ours then.
#if __has_include(<cublasLt.h>) && __has_include(<cuda.h>)
#include <cublasLt.h>
#include <cuda.h>
#if __has_include(<nccl.h>)
#include <nccl.h>
#endif

#include "runtime/cuda/cublaslt_api.h"
#include "runtime/cuda/nccl_api.h"

namespace einc::cuda {
namespace {

// Of a function's arguments: how many, and how large each is.
template <class Function>
struct Arguments;
template <class R, class... A>
struct Arguments<R (*)(A...)> {
  static constexpr size_t count = sizeof...(A);
  static constexpr size_t bytes[sizeof...(A) + 1] = {sizeof(A)..., 0};
};
template <class Ours, class Theirs>
constexpr bool alike() {
  using A = Arguments<Ours>;
  using B = Arguments<Theirs>;
  bool same = A::count == B::count;
  for (size_t i = 0; same && i < A::count; ++i) same = A::bytes[i] == B::bytes[i];
  return same;
}
#define EINC_ALIKE(name, arguments) static_assert(alike<decltype(DriverTable::name), decltype(&::name)>(), #name);
EINC_CUDA_DRIVER(EINC_ALIKE)
#undef EINC_ALIKE
#define EINC_ALIKE(name, arguments) static_assert(alike<decltype(LtTable::name), decltype(&::name)>(), #name);
EINC_CUBLASLT(EINC_ALIKE)
#undef EINC_ALIKE

static_assert(sizeof(Copy2D) == sizeof(CUDA_MEMCPY2D) && offsetof(Copy2D, from) == offsetof(CUDA_MEMCPY2D, srcDevice));
static_assert(offsetof(Copy2D, to) == offsetof(CUDA_MEMCPY2D, dstDevice) &&
              offsetof(Copy2D, to_kind) == offsetof(CUDA_MEMCPY2D, dstMemoryType));
static_assert(offsetof(Copy2D, from_pitch) == offsetof(CUDA_MEMCPY2D, srcPitch) &&
              offsetof(Copy2D, rows) == offsetof(CUDA_MEMCPY2D, Height));
#if __has_include(<nccl.h>)
#define EINC_ALIKE(name, arguments) static_assert(alike<decltype(NcclTable::name), decltype(&::name)>(), #name);
EINC_NCCL(EINC_ALIKE)
#undef EINC_ALIKE
static_assert(sizeof(NcclId) == sizeof(ncclUniqueId) && kNcclBytes == ncclUint8 && kNcclInProgress == ncclInProgress);
#endif

template <class A, class B>
constexpr bool equal(A a, B b) {
  return static_cast<int64_t>(a) == static_cast<int64_t>(b);
}
static_assert(equal(kOutOfMemory, CUDA_ERROR_OUT_OF_MEMORY));
static_assert(equal(kMultiprocessors, CU_DEVICE_ATTRIBUTE_MULTIPROCESSOR_COUNT));
static_assert(equal(kCacheBytes, CU_DEVICE_ATTRIBUTE_L2_CACHE_SIZE));
static_assert(equal(kClockRate, CU_DEVICE_ATTRIBUTE_CLOCK_RATE));
static_assert(equal(kMajor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MAJOR));
static_assert(equal(kMinor, CU_DEVICE_ATTRIBUTE_COMPUTE_CAPABILITY_MINOR));
static_assert(equal(kSharedBytesOptIn, CU_DEVICE_ATTRIBUTE_MAX_SHARED_MEMORY_PER_BLOCK_OPTIN));
static_assert(equal(kMaxDynamicSharedBytes, CU_FUNC_ATTRIBUTE_MAX_DYNAMIC_SHARED_SIZE_BYTES));
static_assert(equal(kNonBlockingStream, CU_STREAM_NON_BLOCKING) && equal(kEventWithoutTiming, CU_EVENT_DISABLE_TIMING));
static_assert(equal(kCaptureThreadLocal, CU_STREAM_CAPTURE_MODE_THREAD_LOCAL));
static_assert(equal(kLtF32, CUDA_R_32F) && equal(kLtF64, CUDA_R_64F) && equal(kLtF16, CUDA_R_16F) && equal(kLtBf16, CUDA_R_16BF));
static_assert(equal(kLtE4m3, CUDA_R_8F_E4M3) && equal(kLtE5m2, CUDA_R_8F_E5M2));
static_assert(equal(kLtSumsF32, CUBLAS_COMPUTE_32F) && equal(kLtSumsF64, CUBLAS_COMPUTE_64F));
static_assert(equal(kLtSumsTf32, CUBLAS_COMPUTE_32F_FAST_TF32));
static_assert(equal(kLtTransposeA, CUBLASLT_MATMUL_DESC_TRANSA) && equal(kLtTransposeB, CUBLASLT_MATMUL_DESC_TRANSB));
static_assert(equal(kLtScaleA, CUBLASLT_MATMUL_DESC_A_SCALE_POINTER) && equal(kLtFastSums, CUBLASLT_MATMUL_DESC_FAST_ACCUM));
static_assert(equal(kLtEpilogue, CUBLASLT_MATMUL_DESC_EPILOGUE) && equal(kLtBias, CUBLASLT_MATMUL_DESC_BIAS_POINTER));
static_assert(equal(kLtGeluInput, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_POINTER));
static_assert(equal(kLtGeluInputLeading, CUBLASLT_MATMUL_DESC_EPILOGUE_AUX_LD));
static_assert(equal(kLtBatchCount, CUBLASLT_MATRIX_LAYOUT_BATCH_COUNT));
static_assert(equal(kLtBatchStride, CUBLASLT_MATRIX_LAYOUT_STRIDED_BATCH_OFFSET));
static_assert(equal(kLtMaxWorkspace, CUBLASLT_MATMUL_PREF_MAX_WORKSPACE_BYTES));
static_assert(equal(kLtReductionSchemes, CUBLASLT_MATMUL_PREF_REDUCTION_SCHEME_MASK));
static_assert(equal(kLtAlignmentA, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_A_BYTES));
static_assert(equal(kLtAlignmentB, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_B_BYTES));
static_assert(equal(kLtAlignmentC, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_C_BYTES));
static_assert(equal(kLtAlignmentD, CUBLASLT_MATMUL_PREF_MIN_ALIGNMENT_D_BYTES));
static_assert(equal(kLtPlain, CUBLASLT_EPILOGUE_DEFAULT) && equal(kLtAddBias, CUBLASLT_EPILOGUE_BIAS));
static_assert(equal(kLtGelu, CUBLASLT_EPILOGUE_GELU) && equal(kLtGelu | kLtAddBias, CUBLASLT_EPILOGUE_GELU_BIAS));
static_assert(equal(kLtGelu | kLtKeepGeluInput, CUBLASLT_EPILOGUE_GELU_AUX));
static_assert(equal(kLtGelu | kLtKeepGeluInput | kLtAddBias, CUBLASLT_EPILOGUE_GELU_AUX_BIAS));
static_assert(equal(kLtGeluSlope, CUBLASLT_EPILOGUE_DGELU));
static_assert(equal(kLtSumsOfA, CUBLASLT_EPILOGUE_BGRADA) && equal(kLtSumsOfB, CUBLASLT_EPILOGUE_BGRADB));
static_assert(equal(kLtReduceInWorkspace, CUBLASLT_REDUCTION_SCHEME_COMPUTE_TYPE));
static_assert(sizeof(LtAlgorithm) == sizeof(cublasLtMatmulAlgo_t) && sizeof(LtCandidate) == sizeof(cublasLtMatmulHeuristicResult_t));
static_assert(offsetof(LtCandidate, workspace_bytes) == offsetof(cublasLtMatmulHeuristicResult_t, workspaceSize));
static_assert(offsetof(LtCandidate, state) == offsetof(cublasLtMatmulHeuristicResult_t, state));

}  // namespace
}  // namespace einc::cuda
#define EINC_COMPARED "with the toolkit's headers"
#else
#define EINC_COMPARED "not: no toolkit's headers were found"
#endif

TEST_CASE("NVIDIA's declarations are those of its headers") { MESSAGE("compared " << EINC_COMPARED); }
