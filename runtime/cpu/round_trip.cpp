// SPDX-License-Identifier: Apache-2.0
// One word passed between two threads of the pool: tells whether their cores share a cache.
#include <atomic>
#include <chrono>
#include <thread>

#include "runtime/cpu/pause.h"
#include "runtime/cpu/peak.h"

namespace einc {
namespace {

constexpr int kBatch = 200;                             // round trips timed together
constexpr auto kLimit = std::chrono::milliseconds(30);  // in all: others may hold the second core
constexpr int64_t kStop = -1;

}  // namespace

double core_round_trip(ThreadPool& pool) {
  if (pool.size() < 2 || std::thread::hardware_concurrency() < 2) return 0;
  alignas(64) std::atomic<int64_t> ball{0};  // even: the first thread's turn
  double best = 0;
  const auto serve = [&] {
    const auto begin = std::chrono::steady_clock::now();
    for (int64_t turn = 0; std::chrono::steady_clock::now() - begin < kLimit;) {
      const auto start = std::chrono::steady_clock::now();
      for (int i = 0; i < kBatch; ++i, turn += 2) {
        ball.store(turn + 1, std::memory_order_release);
        while (ball.load(std::memory_order_acquire) != turn + 2) spin_pause();
      }
      const double seconds = std::chrono::duration<double>(std::chrono::steady_clock::now() - start).count() / kBatch;
      if (best == 0 || seconds < best) best = seconds;
    }
    ball.store(kStop, std::memory_order_release);
  };
  const auto answer = [&] {
    for (int64_t seen = ball.load(std::memory_order_acquire); seen != kStop; seen = ball.load(std::memory_order_acquire)) {
      if (seen % 2 == 1)
        ball.store(seen + 1, std::memory_order_release);
      else
        spin_pause();
    }
  };
  pool.run(pool.size(), [&](int thread, int64_t, int64_t) {
    if (thread == 0) serve();
    if (thread == 1) answer();
  });
  return best;
}

}  // namespace einc
