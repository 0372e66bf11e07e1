// What this machine can do at best, measured: multiply-adds in registers, and bytes through memory.
#pragma once
#include "runtime/cpu/thread_pool.h"

namespace einc {

struct CpuPeak {
  double flops = 0;      // f32 multiply-adds a second, two FLOPs each, all threads of the pool
  double bandwidth = 0;  // bytes a second of a copy that leaves the caches, read and written bytes together
};

// Takes about 0.3 s. The best of several rounds each.
CpuPeak measure_peak(ThreadPool& pool);

}  // namespace einc
