// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/peak.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>

#include "runtime/base/matrix_tiles.h"

namespace einc {
namespace {

constexpr int64_t kPeakRounds = 2'000'000;
constexpr int kChains = 12;  // independent sums: enough to fill the pipelines

double seconds_since(std::chrono::steady_clock::time_point start) {
  return std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
}

__attribute__((target("avx512f"))) float multiply_add_512(int64_t rounds) {
  __m512 sums[kChains], x = _mm512_set1_ps(1.0F), y = _mm512_set1_ps(1e-9F);
  for (auto& s : sums) s = x;
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm512_fmadd_ps(x, y, sums[k]);
  float total = 0, lanes[16];
  for (auto& s : sums) {
    _mm512_storeu_ps(lanes, s);
    for (float lane : lanes) total += lane;
  }
  return total;
}

__attribute__((target("avx2,fma"))) float multiply_add_256(int64_t rounds) {
  __m256 sums[kChains], x = _mm256_set1_ps(1.0F), y = _mm256_set1_ps(1e-9F);
  for (auto& s : sums) s = x;
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm256_fmadd_ps(x, y, sums[k]);
  float total = 0, lanes[8];
  for (auto& s : sums) {
    _mm256_storeu_ps(lanes, s);
    for (float lane : lanes) total += lane;
  }
  return total;
}

__attribute__((target("avx512f,avx512bf16"))) float dot_512(int64_t rounds) {
  __m512 sums[kChains];
  const __m512bh x = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1.0F), _mm512_set1_ps(1.0F)),
                 y = _mm512_cvtne2ps_pbh(_mm512_set1_ps(1e-9F), _mm512_set1_ps(1e-9F));
  for (auto& s : sums) s = _mm512_set1_ps(1.0F);
  for (int64_t i = 0; i < rounds; ++i)
#pragma GCC unroll 12
    for (int k = 0; k < kChains; ++k) sums[k] = _mm512_dpbf16_ps(sums[k], x, y);
  float total = 0, lanes[16];
  for (auto& s : sums) {
    _mm512_storeu_ps(lanes, s);
    for (float lane : lanes) total += lane;
  }
  return total;
}

// A product of tiles takes as long as so many of the others.
constexpr int64_t kTileProducts = 16;
constexpr double kTileFlops = 2 * 16 * 16 * 32;

__attribute__((target("amx-tile,amx-bf16"))) float multiply_tiles(int64_t rounds) {
  struct {
    uint8_t palette = 1, start = 0, reserved[14] = {};
    uint16_t row_bytes[16] = {64, 64, 64, 64, 64, 64};
    uint8_t rows[16] = {16, 16, 16, 16, 16, 16};
  } setting;
  _tile_loadconfig(&setting);
  _tile_zero(0);
  _tile_zero(1);
  _tile_zero(2);
  _tile_zero(3);
  _tile_zero(4);
  _tile_zero(5);
  for (int64_t i = 0; i < rounds / kTileProducts; ++i)
    for (int k = 0; k < kChains / 4; ++k) {
      _tile_dpbf16ps(0, 4, 5);
      _tile_dpbf16ps(1, 4, 5);
      _tile_dpbf16ps(2, 4, 5);
      _tile_dpbf16ps(3, 4, 5);
    }
  float sums[16 * 16];
  _tile_stored(0, sums, 64);
  _tile_release();
  return sums[0];
}

// FLOPs a second: `flops` of each instruction, on every thread of the pool.
double rate(ThreadPool& pool, double flops, float (*work)(int64_t)) {
  volatile float keep = 0;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(pool.size(), [&](int, int64_t, int64_t) { keep = work(kPeakRounds); });
    best = std::max(best, flops * kChains * static_cast<double>(kPeakRounds) * pool.size() / seconds_since(start));
  }
  return best;
}

}  // namespace

double multiply_add_rate(ThreadPool& pool) {
  const bool wide = __builtin_cpu_supports("avx512f");
  return rate(pool, wide ? 32 : 16, wide ? multiply_add_512 : multiply_add_256);
}

double bf16_dot_rate(ThreadPool& pool) {
  if (enable_matrix_tiles()) return rate(pool, kTileFlops / kTileProducts, multiply_tiles);
  return __builtin_cpu_supports("avx512bf16") ? rate(pool, 64, dot_512) : 0;
}

CpuPeak measure_peak(ThreadPool& pool) {
  CpuPeak peak{multiply_add_rate(pool), bf16_dot_rate(pool), copy_rate(pool),  triad_rate(pool),
               core_round_trip(pool),   cache_rate(pool),    launch_time(pool)};
  const double cycles = clock_rate() * pool.size();
  peak.stated_flops = cycles * 2 * (__builtin_cpu_supports("avx512f") ? 32 : 16);
  if (peak.bf16_flops > 0) peak.stated_bf16_flops = enable_matrix_tiles() ? cycles * kTileFlops / kTileProducts : 2 * peak.stated_flops;
  return peak;
}

CpuPeak best_of(const CpuPeak& a, const CpuPeak& b) {
  return {std::max(a.flops, b.flops),   std::max(a.bf16_flops, b.bf16_flops),     std::max(a.copy, b.copy),
          std::max(a.triad, b.triad),   std::min(a.round_trip, b.round_trip),     std::max(a.cache, b.cache),
          std::min(a.launch, b.launch), std::max(a.stated_flops, b.stated_flops), std::max(a.stated_bf16_flops, b.stated_bf16_flops)};
}

}  // namespace einc
