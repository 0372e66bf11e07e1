#include "runtime/cpu/peak.h"

#include <immintrin.h>

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>

namespace einc {
namespace {

constexpr int64_t kRounds = 2'000'000;
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

double multiply_add_rate(ThreadPool& pool) {
  const bool wide = __builtin_cpu_supports("avx512f");
  volatile float keep = 0;
  double best = 0;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(pool.size(), [&](int, int64_t, int64_t) { keep = wide ? multiply_add_512(kRounds) : multiply_add_256(kRounds); });
    const double lanes = wide ? 16 : 8;
    best = std::max(best, 2 * lanes * kChains * static_cast<double>(kRounds) * pool.size() / seconds_since(start));
  }
  return best;
}

__attribute__((target("avx2"))) void copy_past_caches(const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
  _mm_sfence();
}

double copy_rate(ThreadPool& pool) {
  constexpr int64_t kPieces = 1024, kPiece = 16384;  // 64 MiB each way
  const auto allocate = [] {
    return std::unique_ptr<float, decltype(&std::free)>(static_cast<float*>(std::aligned_alloc(64, kPieces * kPiece * sizeof(float))),
                                                        &std::free);
  };
  const auto from = allocate(), to = allocate();
  if (!from || !to) return 0;
  std::fill_n(from.get(), kPieces * kPiece, 1.0F);
  double best = 0;
  for (int repeat = 0; repeat < 6; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(kPieces, [&](int, int64_t begin, int64_t end) {
      copy_past_caches(from.get() + begin * kPiece, to.get() + begin * kPiece, (end - begin) * kPiece);
    });
    best = std::max(best, 2.0 * kPieces * kPiece * sizeof(float) / seconds_since(start));
  }
  return best;
}

}  // namespace

CpuPeak measure_peak(ThreadPool& pool) { return {multiply_add_rate(pool), copy_rate(pool)}; }

}  // namespace einc
