// SPDX-License-Identifier: Apache-2.0
#include "runtime/cuda/cold_timer.h"

#include <algorithm>
#include <array>

#include "runtime/base/failure.h"

namespace einc::cuda {

ColdTimer::ColdTimer(Stream stream) : stream_(stream), bytes_(static_cast<size_t>(2 * Gpu::current().cache_bytes())) {
  try {
    other_ = allocate(static_cast<int64_t>(bytes_), "memory that fills the cache");
  } catch (const RuntimeFailure&) {
    bytes_ = 0;
  }
}

double ColdTimer::seconds(const std::function<void()>& work) const {
  work();
  std::array<double, kRuns - 1> times{};
  for (double& time : times) {
    if (bytes_ > 0) EINC_CUDA(cuMemsetD8Async, other_.get(), 0, bytes_, stream_);
    time = seconds_on(stream_, work);
  }
  std::ranges::nth_element(times, times.begin() + times.size() / 2);
  return times[times.size() / 2];
}

HeldMemory::HeldMemory(DevicePointer memory, size_t bytes, Stream stream) : memory_(memory), held_(bytes) {
  EINC_CUDA(cuMemcpyDtoHAsync_v2, held_.data(), memory, bytes, stream);
  EINC_CUDA(cuStreamSynchronize, stream);
}

void HeldMemory::put_back(Stream stream) const {
  EINC_CUDA(cuMemcpyHtoDAsync_v2, memory_, held_.data(), held_.size(), stream);
  EINC_CUDA(cuStreamSynchronize, stream);
}

}  // namespace einc::cuda
