// SPDX-License-Identifier: Apache-2.0
// How long work on the GPU takes that finds nothing of what it reads in the L2 cache, as a launch amid a step does: algorithms are chosen
// by it. One timing is noise of several percent; the median of several decides.
#pragma once
#include <cstddef>
#include <functional>
#include <vector>

#include "runtime/cuda/device.h"

namespace einc::cuda {

class ColdTimer {
 public:
  static constexpr int kRuns = 8;  // of the work: the first does not count

  // Takes memory for as long as it lives: twice what the cache holds. Where there is no room the cache stays as the runs leave it.
  explicit ColdTimer(Stream stream);
  // `work` puts itself on the stream. Throws RuntimeFailure when the GPU fails.
  double seconds(const std::function<void()>& work) const;

 private:
  Stream stream_;
  size_t bytes_ = 0;
  DeviceMemory other_;
};

// What lies somewhere on the GPU, in memory of the host until it is put back: what is timed writes there.
class HeldMemory {
 public:
  HeldMemory(DevicePointer memory, size_t bytes, Stream stream);
  void put_back(Stream stream) const;

 private:
  DevicePointer memory_;
  std::vector<std::byte> held_;
};

}  // namespace einc::cuda
