// SPDX-License-Identifier: Apache-2.0
// What einc uses of NCCL: movers alone, since sums are einc's own. Declared here as the driver's functions are (driver_api.h).
#pragma once
#include "runtime/cuda/driver_api.h"

namespace einc::cuda {

using NcclComm = struct NcclCommObject*;
struct NcclId {
  char bytes[128];
};
inline constexpr int kNcclBytes = 1;  // ncclUint8
inline constexpr Result kNcclInProgress = 7;

#define EINC_NCCL(X)                                                                              \
  X(ncclGetUniqueId, (NcclId * id))                                                               \
  X(ncclCommInitRank, (NcclComm * comm, int ranks, NcclId id, int rank))                          \
  X(ncclCommDestroy, (NcclComm comm))                                                             \
  X(ncclCommAbort, (NcclComm comm))                                                               \
  X(ncclCommGetAsyncError, (NcclComm comm, Result * error))                                       \
  X(ncclSend, (const void* from, size_t count, int type, int peer, NcclComm comm, Stream stream)) \
  X(ncclRecv, (void* to, size_t count, int type, int peer, NcclComm comm, Stream stream))         \
  X(ncclGroupStart, ())                                                                           \
  X(ncclGroupEnd, ())

struct NcclTable {
  EINC_NCCL(EINC_CUDA_POINTER)
  const char* (*ncclGetErrorString)(Result error) = nullptr;
};
// As the other libraries (libraries.h).
const NcclTable& nccl();
void check_nccl(Result result, const char* call);

}  // namespace einc::cuda

#define EINC_NCCL_CALL(function, ...) ::einc::cuda::check_nccl(::einc::cuda::nccl().function(__VA_ARGS__), #function)
