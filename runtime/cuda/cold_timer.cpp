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

}  // namespace einc::cuda
