#include "runtime/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>

#include "runtime/base/failure.h"

namespace einc::cuda {
namespace {

int ordinal(int count) {
  const char* text = std::getenv("EINC_CUDA_DEVICE");
  if (!text || !*text) return 0;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (*end != '\0' || number < 0 || number >= count)
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("EINC_CUDA_DEVICE is '{}', and there are {} GPUs, numbered from 0", text, count));
  return static_cast<int>(number);
}

int attribute(int which, Device device) {
  int value = 0;
  EINC_CUDA(cuDeviceGetAttribute, &value, which, device);
  return value;
}

}  // namespace

Gpu::Gpu() {
  EINC_CUDA(cuInit, 0);
  int count = 0;
  EINC_CUDA(cuDeviceGetCount, &count);
  if (count == 0) throw RuntimeFailure(FailureKind::resource, "there is no NVIDIA GPU that the driver can see");
  EINC_CUDA(cuDeviceGet, &device_, ordinal(count));
  std::array<char, 256> name{};
  EINC_CUDA(cuDeviceGetName, name.data(), static_cast<int>(name.size()), device_);
  name_ = name.data();
  shape_ = {attribute(kMajor, device_),
            attribute(kMinor, device_),
            attribute(kMultiprocessors, device_),
            attribute(kProcessorThreads, device_),
            attribute(kProcessorSharedBytes, device_),
            attribute(kSharedBytesOptIn, device_)};
  if (shape_.major < kOldestGpu)
    throw RuntimeFailure(FailureKind::resource, fmt::format("{} is of compute capability {}.{}; einc needs {}.0 or newer", name_,
                                                            shape_.major, shape_.minor, kOldestGpu));
  size_t bytes = 0;
  EINC_CUDA(cuDeviceTotalMem_v2, &bytes, device_);
  memory_bytes_ = static_cast<int64_t>(bytes);
  EINC_CUDA(cuDevicePrimaryCtxRetain, &context_, device_);
  make_current();
}

const Gpu& Gpu::get() {
  static const Gpu gpu;
  return gpu;
}

void Gpu::make_current() const { EINC_CUDA(cuCtxSetCurrent, context_); }

void Gpu::enter() noexcept {
  try {
    get().make_current();
  } catch (const RuntimeFailure&) {  // a GPU that has failed: whatever is asked of it next says so
  }
}

int64_t Gpu::free_bytes() const {
  size_t available = 0, total = 0;
  EINC_CUDA(cuMemGetInfo_v2, &available, &total);
  return static_cast<int64_t>(available);
}

DeviceMemory allocate(int64_t bytes, const std::string& what) {
  DeviceMemory memory;
  const Result result = driver().cuMemAlloc_v2(memory.out(), static_cast<size_t>(std::max<int64_t>(bytes, 256)));
  if (result == kOutOfMemory)
    throw RuntimeFailure(FailureKind::resource,
                         fmt::format("{} takes {:.2f} GB, and of the {:.2f} GB of {} only {:.2f} GB are free", what,
                                     static_cast<double>(bytes) / 1e9, static_cast<double>(Gpu::get().memory_bytes()) / 1e9,
                                     Gpu::get().name(), static_cast<double>(Gpu::get().free_bytes()) / 1e9));
  check(result, "cuMemAlloc_v2");
  return memory;
}

HostMemory allocate_host(int64_t bytes) {
  HostMemory memory;
  EINC_CUDA(cuMemHostAlloc, memory.out(), static_cast<size_t>(std::max<int64_t>(bytes, 1)), 0);
  return memory;
}

OwnedStream make_stream() {
  OwnedStream stream;
  EINC_CUDA(cuStreamCreate, stream.out(), kNonBlockingStream);
  return stream;
}

double seconds_on(Stream stream, const std::function<void()>& work) {
  OwnedEvent begin, end;
  EINC_CUDA(cuEventCreate, begin.out(), 0);
  EINC_CUDA(cuEventCreate, end.out(), 0);
  EINC_CUDA(cuEventRecord, begin.get(), stream);
  work();
  EINC_CUDA(cuEventRecord, end.get(), stream);
  EINC_CUDA(cuEventSynchronize, end.get());
  float milliseconds = 0;
  EINC_CUDA(cuEventElapsedTime, &milliseconds, begin.get(), end.get());
  return static_cast<double>(milliseconds) / 1e3;
}

}  // namespace einc::cuda
