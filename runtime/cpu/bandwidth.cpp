// Bytes through memory with streaming stores, which take no reading of the lines they fill.
#include <immintrin.h>

#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/cpu/peak.h"

namespace einc {
namespace {

constexpr int64_t kPieces = 1024, kPiece = 16384;  // 64 MiB an array

__attribute__((target("avx2"))) void copy_past_caches(const float* from, float* to, int64_t count) {
  for (int64_t i = 0; i < count; i += 8) _mm256_stream_ps(to + i, _mm256_load_ps(from + i));
  _mm_sfence();
}

__attribute__((target("avx2,fma"))) void triad_past_caches(const float* b, const float* c, float* a, int64_t count) {
  const __m256 scale = _mm256_set1_ps(3.0F);
  for (int64_t i = 0; i < count; i += 8) _mm256_stream_ps(a + i, _mm256_fmadd_ps(scale, _mm256_load_ps(c + i), _mm256_load_ps(b + i)));
  _mm_sfence();
}

using Array = std::unique_ptr<float, decltype(&std::free)>;

// Bytes a second of `arrays` arrays, all of them moved once by a round of `work(arrays, begin, end)`.
template <class Work>
double rate_of(ThreadPool& pool, int arrays, Work work) {
  std::vector<Array> memory;
  for (int i = 0; i < arrays; ++i) {
    memory.emplace_back(static_cast<float*>(std::aligned_alloc(64, kPieces * kPiece * sizeof(float))), &std::free);
    if (!memory.back()) return 0;
    std::fill_n(memory.back().get(), kPieces * kPiece, 1.0F);
  }
  double best = 0;
  for (int repeat = 0; repeat < 6; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(kPieces, [&](int, int64_t begin, int64_t end) { work(memory, begin * kPiece, (end - begin) * kPiece); });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, static_cast<double>(arrays) * kPieces * kPiece * sizeof(float) / seconds);
  }
  return best;
}

}  // namespace

double copy_rate(ThreadPool& pool) {
  return rate_of(pool, 2,
                 [](const std::vector<Array>& m, int64_t at, int64_t count) { copy_past_caches(m[0].get() + at, m[1].get() + at, count); });
}

double triad_rate(ThreadPool& pool) {
  return rate_of(pool, 3, [](const std::vector<Array>& m, int64_t at, int64_t count) {
    triad_past_caches(m[0].get() + at, m[1].get() + at, m[2].get() + at, count);
  });
}

}  // namespace einc
