// SPDX-License-Identifier: Apache-2.0
// What einc uses of cuBLASLt, declared as in driver_api.h.
#pragma once
#include <array>

#include "runtime/cuda/driver_api.h"

namespace einc::cuda {

using LtHandle = struct LtHandleObject*;
using LtMatmul = struct LtMatmulObject*;          // how to multiply
using LtLayout = struct LtLayoutObject*;          // of a matrix, columns first
using LtPreference = struct LtPreferenceObject*;  // which algorithms may be used

struct LtAlgorithm {
  std::array<uint64_t, 8> data;
  bool operator==(const LtAlgorithm&) const = default;
};
struct LtCandidate {
  LtAlgorithm algorithm;
  size_t workspace_bytes;
  Result state;
  float waves;
  int reserved[4];
};

// Element types, and what sums are kept in (cudaDataType, cublasComputeType_t).
inline constexpr int kLtF32 = 0, kLtF64 = 1, kLtF16 = 2, kLtBf16 = 14, kLtE4m3 = 28, kLtE5m2 = 29;
inline constexpr int kLtSumsF32 = 68, kLtSumsF64 = 70, kLtSumsTf32 = 77;
// Attributes.
inline constexpr int kLtTransposeA = 3, kLtTransposeB = 4, kLtScaleA = 17, kLtFastSums = 25;
inline constexpr int kLtEpilogue = 7, kLtBias = 8, kLtGeluInput = 11, kLtGeluInputLeading = 12;
inline constexpr int kLtBatchCount = 5, kLtBatchStride = 6;
inline constexpr int kLtMaxWorkspace = 1, kLtReductionSchemes = 3, kLtAlignmentA = 5, kLtAlignmentB = 6, kLtAlignmentC = 7,
                     kLtAlignmentD = 8;
// Epilogues (cublasLtEpilogue_t): bits of which kLtPlain stands alone. A GELU is the tanh form; its input's rows are multiples of 8 long.
inline constexpr uint32_t kLtPlain = 1, kLtAddBias = 4, kLtGelu = 32, kLtKeepGeluInput = 128, kLtGeluSlope = 64 | 128, kLtSumsOfA = 256,
                          kLtSumsOfB = 512;
inline constexpr int64_t kLtGeluStep = 8;
// Of sums that several blocks share: in the workspace, each block its own part, added in one order.
inline constexpr uint32_t kLtReduceInWorkspace = 2;

#define EINC_CUBLASLT(X)                                                                                                          \
  X(cublasLtCreate, (LtHandle * handle))                                                                                          \
  X(cublasLtMatmulDescCreate, (LtMatmul * matmul, int sums, int scale_type))                                                      \
  X(cublasLtMatmulDescDestroy, (LtMatmul matmul))                                                                                 \
  X(cublasLtMatmulDescSetAttribute, (LtMatmul matmul, int attribute, const void* value, size_t bytes))                            \
  X(cublasLtMatrixLayoutCreate, (LtLayout * layout, int type, uint64_t rows, uint64_t columns, int64_t leading))                  \
  X(cublasLtMatrixLayoutDestroy, (LtLayout layout))                                                                               \
  X(cublasLtMatrixLayoutSetAttribute, (LtLayout layout, int attribute, const void* value, size_t bytes))                          \
  X(cublasLtMatmulPreferenceCreate, (LtPreference * preference))                                                                  \
  X(cublasLtMatmulPreferenceDestroy, (LtPreference preference))                                                                   \
  X(cublasLtMatmulPreferenceSetAttribute, (LtPreference preference, int attribute, const void* value, size_t bytes))              \
  X(cublasLtMatmulAlgoGetHeuristic, (LtHandle handle, LtMatmul matmul, LtLayout a, LtLayout b, LtLayout c, LtLayout d,            \
                                     LtPreference preference, int asked, LtCandidate* candidates, int* found))                    \
  X(cublasLtMatmul, (LtHandle handle, LtMatmul matmul, const void* alpha, DevicePointer a, LtLayout a_layout, DevicePointer b,    \
                     LtLayout b_layout, const void* beta, DevicePointer c, LtLayout c_layout, DevicePointer d, LtLayout d_layout, \
                     const LtAlgorithm* algorithm, DevicePointer workspace, size_t workspace_bytes, Stream stream))

struct LtTable {
  EINC_CUBLASLT(EINC_CUDA_POINTER)
  const char* (*cublasLtGetStatusName)(Result status) = nullptr;
  size_t (*cublasLtGetVersion)() = nullptr;
};

}  // namespace einc::cuda
