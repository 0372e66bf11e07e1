#include "runtime/cpu/thread_pool.h"

#include <atomic>
#include <thread>
#include <vector>

#include "runtime/base/matrix_tiles.h"

namespace einc {
namespace {

// Turns of waiting before the thread sleeps: about 50 microseconds, as long as the gaps between launches of one step.
constexpr int kSpins = 20000;

void pause() { __builtin_ia32_pause(); }

}  // namespace

struct ThreadPool::Team {
  std::vector<std::thread> members;
  std::atomic<uint64_t> round{0};
  std::atomic<int> left{0};
  std::atomic<bool> stop{false};
  int64_t count = 0;
  const std::function<void(int, int64_t, int64_t)>* work = nullptr;

  void part(int thread, int threads) const {
    const int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
    if (begin < end) (*work)(thread, begin, end);
  }

  void serve(int thread, int threads) {
    uint64_t seen = 0;
    while (true) {
      for (int spin = 0; round.load(std::memory_order_acquire) == seen && spin < kSpins; ++spin) pause();
      round.wait(seen, std::memory_order_acquire);
      ++seen;
      if (stop.load(std::memory_order_relaxed)) return;
      part(thread, threads);
      left.fetch_sub(1, std::memory_order_release);
    }
  }
};

ThreadPool::ThreadPool(int threads) : team_(std::make_unique<Team>()), threads_(threads < 1 ? 1 : threads) {
  enable_matrix_tiles();  // kernels may use them on any thread
  for (int t = 1; t < threads_; ++t) team_->members.emplace_back([this, t] { team_->serve(t, threads_); });
}

ThreadPool::~ThreadPool() {
  team_->stop.store(true, std::memory_order_relaxed);
  team_->round.fetch_add(1, std::memory_order_release);
  team_->round.notify_all();
  for (std::thread& t : team_->members) t.join();
}

void ThreadPool::run(int64_t count, const std::function<void(int, int64_t, int64_t)>& work) {
  team_->count = count;
  team_->work = &work;
  if (threads_ > 1) {
    team_->left.store(threads_ - 1, std::memory_order_relaxed);
    team_->round.fetch_add(1, std::memory_order_release);
    team_->round.notify_all();
  }
  team_->part(0, threads_);
  while (team_->left.load(std::memory_order_acquire) > 0) pause();
}

}  // namespace einc
