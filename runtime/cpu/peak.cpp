// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/peak.h"

#include <algorithm>
#include <chrono>
#include <optional>

#include "runtime/cpu/peak_loops.h"

namespace einc {
namespace {

constexpr int64_t kPeakRounds = 2'000'000;

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

// FLOPs a second on every thread of the pool.
double rate(ThreadPool& pool, const PeakLoop& loop) {
  volatile float keep = 0;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(pool.size(), [&](int, int64_t, int64_t) { keep = loop.run(kPeakRounds); });
    best = std::max(best, loop.flops_of_round * static_cast<double>(kPeakRounds) * pool.size() / seconds_since(start));
  }
  return best;
}

}  // namespace

double multiply_add_rate(ThreadPool& pool) { return rate(pool, multiply_add_loop()); }

double bf16_dot_rate(ThreadPool& pool) {
  const std::optional<PeakLoop> loop = bf16_loop();
  return loop ? rate(pool, *loop) : 0;
}

CpuPeak measure_peak(ThreadPool& pool) {
  CpuPeak peak{multiply_add_rate(pool), bf16_dot_rate(pool), copy_rate(pool),   triad_rate(pool),
               core_round_trip(pool),   cache_rate(pool),    launch_time(pool), 0};
  const double cycles = clock_rate() * pool.size();
  peak.stated_flops = cycles * multiply_add_loop().flops_of_cycle;
  if (peak.bf16_flops > 0) peak.stated_bf16_flops = cycles * bf16_loop()->flops_of_cycle;
  return peak;
}

CpuPeak best_of(const CpuPeak& a, const CpuPeak& b) {
  return {std::max(a.flops, b.flops),
          std::max(a.bf16_flops, b.bf16_flops),
          std::max(a.copy, b.copy),
          std::max(a.triad, b.triad),
          std::min(a.round_trip, b.round_trip),
          std::max(a.cache, b.cache),
          std::min(a.launch, b.launch),
          std::min(a.small_launch, b.small_launch),
          std::max(a.stated_flops, b.stated_flops),
          std::max(a.stated_bf16_flops, b.stated_bf16_flops)};
}

}  // namespace einc
