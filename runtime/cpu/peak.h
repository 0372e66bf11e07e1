// SPDX-License-Identifier: Apache-2.0
// What this machine can do at best, measured: multiply-adds in registers, bytes through memory and through the last cache, a word between
// two cores, a launch of all threads.
#pragma once
#include <algorithm>

#include "runtime/cpu/thread_pool.h"

namespace einc {

struct CpuPeak {
  double flops = 0;         // f32 multiply-adds a second, two FLOPs each, all threads of the pool
  double bf16_flops = 0;    // those of bf16: matrix tiles or dot instructions; 0 where the processor has none
  double copy = 0;          // bytes a second that leave the caches, read and written ones together: a[i] = b[i],
  double triad = 0;         // and a[i] = b[i] + s * c[i]; both with streaming stores
  double round_trip = 0;    // seconds from one core to another and back; 0 with one thread
  double cache = 0;         // bytes a second between arrays that the last cache holds and the one before does not, as for `copy`
  double launch = 0;        // seconds of a run of the pool that does nothing
  double small_launch = 0;  // seconds of a launch that one thread does at once (runtime/executor/small_launch.h); 0: not measured
  // By the clock and two units of the widest vectors, or of tiles, in each core: no program does more, whatever else the machine did
  // while the others were measured.
  double stated_flops = 0, stated_bf16_flops = 0;

  double bandwidth() const { return std::max(copy, triad); }
};

// A round trip above the first is one between cores that share no cache ("far"); above the second other work holds a core ("busy").
inline constexpr double kFarRoundTrip = 200e-9, kBusyRoundTrip = 2e-6;

// Takes about 0.5 s. The best of several rounds each.
CpuPeak measure_peak(ThreadPool& pool);
CpuPeak best_of(const CpuPeak& a, const CpuPeak& b);

double clock_rate();  // cycles a second
double multiply_add_rate(ThreadPool& pool);
double bf16_dot_rate(ThreadPool& pool);
double copy_rate(ThreadPool& pool);
double triad_rate(ThreadPool& pool);
double core_round_trip(ThreadPool& pool);
double cache_rate(ThreadPool& pool);
double launch_time(ThreadPool& pool);

}  // namespace einc
