// SPDX-License-Identifier: Apache-2.0
// Bytes through memory with streaming stores, which take no reading of the lines they fill; bytes through the last cache; a launch.

#include <algorithm>
#include <chrono>
#include <cstdlib>
#include <memory>
#include <vector>

#include "runtime/cpu/peak.h"
#include "runtime/cpu/peak_loops.h"

namespace einc {
namespace {

constexpr int64_t kPieces = 1024, kPiece = 16384;  // 64 MiB an array

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

// Each thread goes to and fro between two arrays of 2 MiB: more than the caches of a core hold, less than its share of the last one.
double cache_rate(ThreadPool& pool) {
  constexpr int64_t kCount = int64_t{2} << 18, kTurns = 64;
  std::vector<Array> memory;
  for (int i = 0; i < 2 * pool.size(); ++i) {
    memory.emplace_back(static_cast<float*>(std::aligned_alloc(64, kCount * sizeof(float))), &std::free);
    if (!memory.back()) return 0;
    std::fill_n(memory.back().get(), kCount, 1.0F);
  }
  double best = 0;
  for (int repeat = 0; repeat < 4; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    pool.run(pool.size(), [&](int, int64_t begin, int64_t end) {
      for (int64_t t = begin; t < end; ++t)
        for (int64_t turn = 0; turn < kTurns; ++turn) {
          const auto first = static_cast<size_t>(2 * t + turn % 2), second = static_cast<size_t>(2 * t + 1 - turn % 2);
          copy_within_caches(memory[first].get(), memory[second].get(), kCount);
        }
    });
    const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count();
    best = std::max(best, 2.0 * kTurns * kCount * sizeof(float) * pool.size() / seconds);
  }
  return best;
}

double launch_time(ThreadPool& pool) {
  constexpr int kLaunches = 2000;
  double best = 1;
  for (int repeat = 0; repeat < 5; ++repeat) {
    const auto start = std::chrono::steady_clock::now();
    for (int i = 0; i < kLaunches; ++i) pool.run(pool.size(), [](int, int64_t, int64_t) {});
    best = std::min(best, std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kLaunches);
  }
  return best;
}

}  // namespace einc
