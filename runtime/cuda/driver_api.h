// SPDX-License-Identifier: Apache-2.0
// What einc uses of NVIDIA's driver API and NVRTC, declared here so that no toolkit is needed to build: types of the same layout under
// names of ours, and tables of the functions' addresses (libraries.h fills them).
#pragma once
#include <cstddef>
#include <cstdint>

namespace einc::cuda {

using Result = int;  // CUresult, nvrtcResult, cublasStatus_t: 0 is success
using Device = int;
using DevicePointer = uint64_t;
using Context = struct ContextObject*;
using Stream = struct StreamObject*;
using Event = struct EventObject*;
using Library = struct LibraryObject*;
using Kernel = struct KernelObject*;  // a CUkernel; taken where a CUfunction is
using Graph = struct GraphObject*;
using GraphExec = struct GraphExecObject*;
using NvrtcProgram = struct NvrtcProgramObject*;

// CUDA_MEMCPY2D: rows of bytes from one place to another.
struct Copy2D {
  size_t from_x = 0, from_row = 0;
  int from_kind = 0;
  const void* from_host = nullptr;
  DevicePointer from = 0;
  void* from_array = nullptr;
  size_t from_pitch = 0;
  size_t to_x = 0, to_row = 0;
  int to_kind = 0;
  void* to_host = nullptr;
  DevicePointer to = 0;
  void* to_array = nullptr;
  size_t to_pitch = 0;
  size_t width = 0, rows = 0;
};
inline constexpr int kDeviceMemory = 2;  // CUmemorytype

inline constexpr Result kOutOfMemory = 2;
inline constexpr int kClockRate = 13, kMultiprocessors = 16, kCacheBytes = 38, kProcessorThreads = 39, kMajor = 75, kMinor = 76,
                     kProcessorSharedBytes = 81,
                     kSharedBytesOptIn = 97;      // CUdevice_attribute
inline constexpr int kMaxDynamicSharedBytes = 8;  // CUfunction_attribute
inline constexpr unsigned kNonBlockingStream = 1, kEventWithoutTiming = 2;
inline constexpr int kCaptureThreadLocal = 1;

// X(name, arguments): Result name arguments.
#define EINC_CUDA_DRIVER(X)                                                                                                          \
  X(cuInit, (unsigned flags))                                                                                                        \
  X(cuDriverGetVersion, (int* version))                                                                                              \
  X(cuGetErrorName, (Result error, const char** text))                                                                               \
  X(cuGetErrorString, (Result error, const char** text))                                                                             \
  X(cuDeviceGetCount, (int* count))                                                                                                  \
  X(cuDeviceGet, (Device * device, int ordinal))                                                                                     \
  X(cuDeviceGetName, (char* name, int length, Device device))                                                                        \
  X(cuDeviceGetAttribute, (int* value, int attribute, Device device))                                                                \
  X(cuDeviceTotalMem_v2, (size_t * bytes, Device device))                                                                            \
  X(cuDevicePrimaryCtxRetain, (Context * context, Device device))                                                                    \
  X(cuDevicePrimaryCtxRelease_v2, (Device device))                                                                                   \
  X(cuCtxGetCurrent, (Context * context))                                                                                            \
  X(cuCtxSetCurrent, (Context context))                                                                                              \
  X(cuMemGetInfo_v2, (size_t * free, size_t * total))                                                                                \
  X(cuMemAlloc_v2, (DevicePointer * memory, size_t bytes))                                                                           \
  X(cuMemFree_v2, (DevicePointer memory))                                                                                            \
  X(cuMemHostAlloc, (void** memory, size_t bytes, unsigned flags))                                                                   \
  X(cuMemFreeHost, (void* memory))                                                                                                   \
  X(cuMemcpyHtoDAsync_v2, (DevicePointer to, const void* from, size_t bytes, Stream stream))                                         \
  X(cuMemcpyDtoHAsync_v2, (void* to, DevicePointer from, size_t bytes, Stream stream))                                               \
  X(cuMemcpyDtoDAsync_v2, (DevicePointer to, DevicePointer from, size_t bytes, Stream stream))                                       \
  X(cuMemcpy2DAsync_v2, (const Copy2D* copy, Stream stream))                                                                         \
  X(cuMemsetD8Async, (DevicePointer to, unsigned char value, size_t bytes, Stream stream))                                           \
  X(cuMemsetD32Async, (DevicePointer to, unsigned value, size_t count, Stream stream))                                               \
  X(cuStreamCreate, (Stream * stream, unsigned flags))                                                                               \
  X(cuStreamDestroy_v2, (Stream stream))                                                                                             \
  X(cuStreamSynchronize, (Stream stream))                                                                                            \
  X(cuStreamWaitEvent, (Stream stream, Event event, unsigned flags))                                                                 \
  X(cuStreamBeginCapture_v2, (Stream stream, int mode))                                                                              \
  X(cuStreamEndCapture, (Stream stream, Graph * graph))                                                                              \
  X(cuEventCreate, (Event * event, unsigned flags))                                                                                  \
  X(cuEventDestroy_v2, (Event event))                                                                                                \
  X(cuEventRecord, (Event event, Stream stream))                                                                                     \
  X(cuEventSynchronize, (Event event))                                                                                               \
  X(cuEventElapsedTime, (float* milliseconds, Event begin, Event end))                                                               \
  X(cuGraphInstantiateWithFlags, (GraphExec * exec, Graph graph, unsigned long long flags))                                          \
  X(cuGraphLaunch, (GraphExec exec, Stream stream))                                                                                  \
  X(cuGraphExecDestroy, (GraphExec exec))                                                                                            \
  X(cuGraphDestroy, (Graph graph))                                                                                                   \
  X(cuLibraryLoadData, (Library * library, const void* code, int* jit_options, void** jit_values, unsigned jit_count, int* options,  \
                        void** values, unsigned count))                                                                              \
  X(cuLibraryUnload, (Library library))                                                                                              \
  X(cuLibraryGetKernel, (Kernel * kernel, Library library, const char* name))                                                        \
  X(cuKernelSetAttribute, (int attribute, int value, Kernel kernel, Device device))                                                  \
  X(cuLaunchKernel, (Kernel kernel, unsigned blocks_x, unsigned blocks_y, unsigned blocks_z, unsigned threads_x, unsigned threads_y, \
                     unsigned threads_z, unsigned shared_bytes, Stream stream, void** arguments, void** extra))

#define EINC_NVRTC(X)                                                                                                                \
  X(nvrtcVersion, (int* major, int* minor))                                                                                          \
  X(nvrtcGetNumSupportedArchs, (int* count))                                                                                         \
  X(nvrtcGetSupportedArchs, (int* archs))                                                                                            \
  X(nvrtcCreateProgram, (NvrtcProgram * program, const char* source, const char* name, int headers, const char* const* header_texts, \
                         const char* const* header_names))                                                                           \
  X(nvrtcDestroyProgram, (NvrtcProgram * program))                                                                                   \
  X(nvrtcCompileProgram, (NvrtcProgram program, int count, const char* const* options))                                              \
  X(nvrtcGetProgramLogSize, (NvrtcProgram program, size_t * bytes))                                                                  \
  X(nvrtcGetProgramLog, (NvrtcProgram program, char* log))                                                                           \
  X(nvrtcGetPTXSize, (NvrtcProgram program, size_t * bytes))                                                                         \
  X(nvrtcGetPTX, (NvrtcProgram program, char* ptx))                                                                                  \
  X(nvrtcGetCUBINSize, (NvrtcProgram program, size_t * bytes))                                                                       \
  X(nvrtcGetCUBIN, (NvrtcProgram program, char* cubin))

#define EINC_CUDA_POINTER(name, arguments) Result(*name) arguments = nullptr;
struct DriverTable {
  EINC_CUDA_DRIVER(EINC_CUDA_POINTER)
};
struct NvrtcTable {
  EINC_NVRTC(EINC_CUDA_POINTER)
  const char* (*nvrtcGetErrorString)(Result error) = nullptr;
};

}  // namespace einc::cuda
