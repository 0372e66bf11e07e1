// SPDX-License-Identifier: Apache-2.0
// The device itself, its memory, and copies.
#include <algorithm>
#include <cstdlib>
#include <cstring>
#include <map>
#include <string>
#include <vector>

#include "emulator.h"
#include "gpu.h"
#include "scheduler.h"

namespace emulator {
namespace {

std::recursive_mutex mutex;
std::map<std::string, unsigned long long> counts;
std::map<const unsigned char*, size_t> pinned;
constexpr int kMostDevices = 8;
// As many as a test, or the environment of a process, asks for.
int devices = std::max(1, std::atoi(std::getenv("EINC_EMULATED_DEVICES") ? std::getenv("EINC_EMULATED_DEVICES") : "1"));
char contexts[kMostDevices];  // one of each device, by address
unsigned long long kernels[kMostDevices];
thread_local einc::cuda::Context current = nullptr;

bool is_pinned(const void* address, size_t bytes) {
  const auto* first = static_cast<const unsigned char*>(address);
  auto after = pinned.upper_bound(first);
  if (after == pinned.begin()) return false;
  --after;
  return first + bytes <= after->first + after->second;
}

// A replay of a graph copies from and to where the host's memory was when it was captured, which is known to stay only where it is pinned.
Result check_host_memory(const void* address, size_t bytes, einc::cuda::Stream stream) {
  return is_captured(stream) && !is_pinned(address, bytes) ? fail(kWrongCapture, "a captured copy of host memory that is not pinned") : 0;
}

const void* pointer(uint64_t address) { return reinterpret_cast<const void*>(address); }

}  // namespace

Gpu& gpu() {
  static Gpu gpu;
  return gpu;
}

Call::Call(const char* function) : lock_(mutex) { ++counts[function]; }

Result fail(Result result, const std::string& why) {
  gpu().failure = why;
  return result;
}

einc::cuda::Context current_context() { return current; }
int device_of(einc::cuda::Context context) { return static_cast<int>(reinterpret_cast<char*>(context) - contexts); }
void note_kernel(einc::cuda::Context context) { ++kernels[device_of(context)]; }
void set_devices(int count) { devices = count; }
unsigned long long kernels_on(int device) { return kernels[device]; }

Result needs_context() { return current ? 0 : fail(kInvalidContext, "no context is this thread's own"); }

Result check_memory(uint64_t address, size_t bytes) {
  return gpu().memory.holds(address, bytes) ? 0 : fail(kInvalidValue, "a copy goes beyond the GPU's memory");
}

void set_order(unsigned order) { gpu().order = order; }
void set_memory(size_t bytes) { gpu().memory.set_total(bytes); }
size_t used_memory() { return gpu().memory.used(); }
unsigned long long calls(const std::string& function) {
  const std::lock_guard lock(mutex);
  return counts[function];
}
void stop(const char* why) { scheduler()->fail(why); }
unsigned long long threads_run() { return gpu().threads; }

}  // namespace emulator

using namespace einc::cuda;
using emulator::Call;

extern "C" {

Result cuInit(unsigned) {
  const Call call("cuInit");
  return 0;
}

Result cuDriverGetVersion(int* version) {
  const Call call("cuDriverGetVersion");
  const char* asked = std::getenv("EINC_EMULATED_DRIVER");
  *version = asked ? std::atoi(asked) : 13000;
  return 0;
}

Result cuGetErrorName(Result error, const char** text) {
  const Call call("cuGetErrorName");
  static const std::map<Result, const char*> names{{emulator::kInvalidValue, "CUDA_ERROR_INVALID_VALUE"},
                                                   {emulator::kOutOfMemory, "CUDA_ERROR_OUT_OF_MEMORY"},
                                                   {emulator::kInvalidImage, "CUDA_ERROR_INVALID_IMAGE"},
                                                   {emulator::kInvalidHandle, "CUDA_ERROR_INVALID_HANDLE"},
                                                   {emulator::kNotFound, "CUDA_ERROR_NOT_FOUND"},
                                                   {emulator::kLaunchFailed, "CUDA_ERROR_LAUNCH_FAILED"},
                                                   {emulator::kWrongCapture, "CUDA_ERROR_STREAM_CAPTURE_UNSUPPORTED"}};
  const auto found = names.find(error);
  *text = found == names.end() ? nullptr : found->second;
  return found == names.end() ? emulator::kInvalidValue : 0;
}

Result cuGetErrorString(Result, const char** text) {
  const Call call("cuGetErrorString");
  *text = emulator::gpu().failure.c_str();
  return 0;
}

Result cuDeviceGetCount(int* count) {
  const Call call("cuDeviceGetCount");
  *count = emulator::devices;
  return 0;
}

Result cuDeviceGet(Device* device, int ordinal) {
  const Call call("cuDeviceGet");
  *device = ordinal;
  return ordinal < emulator::devices ? 0 : emulator::fail(emulator::kInvalidValue, "there is no such GPU");
}

Result cuDeviceGetName(char* name, int length, Device) {
  const Call call("cuDeviceGetName");
  std::strncpy(name, "emulated GPU", static_cast<size_t>(length));
  return 0;
}

Result cuDeviceGetAttribute(int* value, int attribute, Device) {
  const Call call("cuDeviceGetAttribute");
  static const std::map<int, int> values{{kMultiprocessors, 132},
                                         {kProcessorThreads, 2048},
                                         {kMajor, 9},
                                         {kMinor, 0},
                                         {kCacheBytes, 1 << 16},
                                         {kClockRate, 1'980'000},
                                         {kProcessorSharedBytes, 233472},
                                         {kSharedBytesOptIn, 232448}};
  const auto found = values.find(attribute);
  if (found == values.end()) return emulator::fail(emulator::kInvalidValue, "an attribute that the emulator does not know");
  *value = found->second;
  return 0;
}

Result cuDeviceTotalMem_v2(size_t* bytes, Device) {
  const Call call("cuDeviceTotalMem_v2");
  *bytes = emulator::gpu().memory.total();
  return 0;
}

Result cuDevicePrimaryCtxRetain(Context* context, Device device) {
  const Call call("cuDevicePrimaryCtxRetain");
  *context = reinterpret_cast<Context>(&emulator::contexts[device]);
  return 0;
}

Result cuDevicePrimaryCtxRelease_v2(Device) {
  const Call call("cuDevicePrimaryCtxRelease_v2");
  return 0;
}

Result cuCtxGetCurrent(Context* context) {
  const Call call("cuCtxGetCurrent");
  *context = emulator::current;
  return 0;
}

Result cuCtxSetCurrent(Context context) {
  const Call call("cuCtxSetCurrent");
  emulator::current = context;
  return 0;
}

Result cuMemGetInfo_v2(size_t* available, size_t* total) {
  const Call call("cuMemGetInfo_v2");
  if (const Result refused = emulator::needs_context(); refused != 0) return refused;
  *total = emulator::gpu().memory.total();
  *available = *total - emulator::gpu().memory.used();
  return 0;
}

Result cuMemAlloc_v2(DevicePointer* memory, size_t bytes) {
  const Call call("cuMemAlloc_v2");
  if (const Result refused = emulator::unsafe_in_capture("memory is taken"); refused != 0) return refused;
  if (bytes == 0) return emulator::fail(emulator::kInvalidValue, "an allocation of nothing");
  *memory = emulator::gpu().memory.allocate(bytes);
  return *memory != 0 ? 0 : emulator::fail(emulator::kOutOfMemory, "out of memory");
}

Result cuMemFree_v2(DevicePointer memory) {
  const Call call("cuMemFree_v2");
  if (const Result refused = emulator::unsafe_in_capture("memory is given back"); refused != 0) return refused;
  return emulator::gpu().memory.free(memory) ? 0 : emulator::fail(emulator::kInvalidValue, "memory is given back that was not taken");
}

Result cuMemHostAlloc(void** memory, size_t bytes, unsigned) {
  const Call call("cuMemHostAlloc");
  if (const Result refused = emulator::unsafe_in_capture("host memory is taken"); refused != 0) return refused;
  *memory = std::malloc(bytes);
  emulator::pinned[static_cast<unsigned char*>(*memory)] = bytes;
  return 0;
}

Result cuMemFreeHost(void* memory) {
  const Call call("cuMemFreeHost");
  if (const Result refused = emulator::unsafe_in_capture("host memory is given back"); refused != 0) return refused;
  if (emulator::pinned.erase(static_cast<unsigned char*>(memory)) == 0)
    return emulator::fail(emulator::kInvalidValue, "host memory is given back that was not taken");
  std::free(memory);
  return 0;
}

// Reads when it runs: where the GPU reaches all of the host's memory that holds for memory that is not pinned too.
Result cuMemcpyHtoDAsync_v2(DevicePointer to, const void* from, size_t bytes, Stream stream) {
  const Call call("cuMemcpyHtoDAsync_v2");
  if (const Result result = emulator::check_memory(to, bytes); result != 0) return result;
  if (const Result result = emulator::check_host_memory(from, bytes, stream); result != 0) return result;
  return emulator::give(stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to), from, bytes);
    return 0;
  });
}

Result cuMemcpyDtoHAsync_v2(void* to, DevicePointer from, size_t bytes, Stream stream) {
  const Call call("cuMemcpyDtoHAsync_v2");
  if (const Result result = emulator::check_memory(from, bytes); result != 0) return result;
  if (const Result result = emulator::check_host_memory(to, bytes, stream); result != 0) return result;
  return emulator::give(stream, [=] {
    std::memcpy(to, emulator::pointer(from), bytes);
    return 0;
  });
}

Result cuMemcpyDtoDAsync_v2(DevicePointer to, DevicePointer from, size_t bytes, Stream stream) {
  const Call call("cuMemcpyDtoDAsync_v2");
  if (const Result result = emulator::check_memory(to, bytes); result != 0) return result;
  if (const Result result = emulator::check_memory(from, bytes); result != 0) return result;
  if (to < from + bytes && from < to + bytes) return emulator::fail(emulator::kInvalidValue, "a copy onto part of what it copies");
  return emulator::give(stream, [=] {
    std::memcpy(reinterpret_cast<void*>(to), emulator::pointer(from), bytes);
    return 0;
  });
}

Result cuMemcpy2DAsync_v2(const Copy2D* copy, Stream stream) {
  const Call call("cuMemcpy2DAsync_v2");
  if (copy->from_kind != kDeviceMemory || copy->to_kind != kDeviceMemory || copy->width > copy->from_pitch || copy->width > copy->to_pitch)
    return emulator::fail(emulator::kInvalidValue, "a copy of rows that the emulator does not know");
  const auto bytes = [&](size_t pitch) { return copy->rows == 0 ? 0 : (copy->rows - 1) * pitch + copy->width; };
  if (const Result result = emulator::check_memory(copy->to, bytes(copy->to_pitch)); result != 0) return result;
  if (const Result result = emulator::check_memory(copy->from, bytes(copy->from_pitch)); result != 0) return result;
  return emulator::give(stream, [c = *copy] {
    for (size_t r = 0; r < c.rows; ++r)
      std::memcpy(reinterpret_cast<void*>(c.to + r * c.to_pitch), emulator::pointer(c.from + r * c.from_pitch), c.width);
    return 0;
  });
}

Result cuMemsetD8Async(DevicePointer to, unsigned char value, size_t bytes, einc::cuda::Stream stream) {
  const Call call("cuMemsetD8Async");
  if (const Result result = emulator::check_memory(to, bytes); result != 0) return result;
  return emulator::give(stream, [=] {
    std::memset(reinterpret_cast<void*>(to), value, bytes);
    return 0;
  });
}

Result cuMemsetD32Async(DevicePointer to, unsigned value, size_t count, Stream stream) {
  const Call call("cuMemsetD32Async");
  if (const Result result = emulator::check_memory(to, count * sizeof value); result != 0) return result;
  return emulator::give(stream, [=] {
    std::fill_n(reinterpret_cast<unsigned*>(to), count, value);
    return 0;
  });
}

}  // extern "C"
