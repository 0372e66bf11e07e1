// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/device.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <memory>
#include <mutex>
#include <utility>

#include "runtime/base/failure.h"

namespace einc::cuda {
namespace {

thread_local const Gpu* current_gpu = nullptr;

int count_gpus() {
  EINC_CUDA(cuInit, 0);
  int count = 0;
  EINC_CUDA(cuDeviceGetCount, &count);
  if (count == 0) throw RuntimeFailure(FailureKind::resource, "there is no NVIDIA GPU that the driver can see");
  return count;
}

int local_rank = 0;

int default_number() {
  if (const int count = count_gpus(); local_rank > 0 && count > 1) {
    if (local_rank < count) return local_rank;
    throw RuntimeFailure(FailureKind::resource, fmt::format("process {} of this machine has no GPU: there are {}", local_rank, count));
  }
  const char* text = std::getenv("EINC_CUDA_DEVICE");
  if (!text || !*text) return 0;
  char* end = nullptr;
  const long number = std::strtol(text, &end, 10);
  if (const int count = count_gpus(); *end != '\0' || number < 0 || number >= count)
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

Gpu::Gpu(int number) : number_(number) {
  if (const int count = count_gpus(); number < 0 || number >= count)
    throw RuntimeFailure(FailureKind::resource, fmt::format("there is no GPU {}: there are {}, numbered from 0", number, count));
  EINC_CUDA(cuDeviceGet, &device_, number);
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
  cache_bytes_ = attribute(kCacheBytes, device_);
  clock_ = 1e3 * attribute(kClockRate, device_);
  size_t bytes = 0;
  EINC_CUDA(cuDeviceTotalMem_v2, &bytes, device_);
  memory_bytes_ = static_cast<int64_t>(bytes);
  EINC_CUDA(cuDevicePrimaryCtxRetain, &context_, device_);
}

const Gpu& Gpu::numbered(int number) {
  static std::mutex mutex;
  static auto& opened = *new std::map<int, std::unique_ptr<const Gpu>>;  // to the process' end: handles of statics outlive statics
  const std::lock_guard lock(mutex);
  std::unique_ptr<const Gpu>& gpu = opened[number];
  if (!gpu) gpu.reset(new Gpu(number));
  return *gpu;
}

const Gpu& Gpu::get() {
  static const Gpu& gpu = numbered(default_number());
  return gpu;
}

void Gpu::take_by_local_rank(int rank) { local_rank = rank; }

const Gpu& Gpu::current() { return current_gpu ? *current_gpu : get(); }

GpuScope::GpuScope(const Gpu& gpu) noexcept : outer_(std::exchange(current_gpu, &gpu)), own_(gpu.context()) {
  driver().cuCtxGetCurrent(&before_);
  if (before_ != own_) driver().cuCtxSetCurrent(own_);
}

GpuScope::~GpuScope() {
  current_gpu = outer_;
  if (before_ != own_) driver().cuCtxSetCurrent(before_);
}

int64_t Gpu::free_bytes() const {
  const GpuScope scope(*this);
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
                                     static_cast<double>(bytes) / 1e9, static_cast<double>(Gpu::current().memory_bytes()) / 1e9,
                                     Gpu::current().name(), static_cast<double>(Gpu::current().free_bytes()) / 1e9));
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
