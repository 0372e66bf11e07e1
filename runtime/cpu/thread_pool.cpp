// SPDX-License-Identifier: Apache-2.0
#include "runtime/cpu/thread_pool.h"

#include <atomic>
#include <chrono>
#include <thread>
#include <vector>

#include "runtime/base/matrix_tiles.h"
#include "runtime/base/start_thread.h"
#include "runtime/cpu/pause.h"

namespace einc {
namespace {

// A thread that waits sleeps after this time, which is longer than the gaps between launches of one step and than most waits for the
// slowest thread: a processor that was halted meanwhile wakes late. When other programs want the processors too, sleeping leaves one
// to the thread that is waited for.
constexpr auto kAwake = std::chrono::milliseconds(1);
constexpr int kPausesPerLook = 32;  // at the clock

// Returns the first value other than `value`.
template <class T>
T wait_for_change(const std::atomic<T>& place, T value) {
  const auto start = std::chrono::steady_clock::now();
  T now = place.load(std::memory_order_acquire);
  while (now == value && std::chrono::steady_clock::now() - start < kAwake)
    for (int i = 0; i < kPausesPerLook && now == value; ++i) {
      spin_pause();
      now = place.load(std::memory_order_acquire);
    }
  while (now == value) {
    place.wait(value, std::memory_order_acquire);
    now = place.load(std::memory_order_acquire);
  }
  return now;
}

struct Round {
  const ThreadTeam& team;
  int parts;
  int64_t count;
  const std::function<void(int, int64_t, int64_t)>& work;
};

// Parts go to threads by number, so that a part meets the caches of the thread that had it in the round before.
void run_borrowed(const ThreadTeam& team, int parts, int64_t count, const std::function<void(int, int64_t, int64_t)>& work) {
  Round round{team, parts, count, work};
  const auto serve = [](void* data) {
    const Round& r = *static_cast<const Round*>(data);
    for (int part = r.team.index(); part < r.parts; part += r.team.size()) {
      const int64_t begin = r.count * part / r.parts, end = r.count * (part + 1) / r.parts;
      if (begin < end) r.work(part, begin, end);
    }
  };
  team.fork(serve, &round, static_cast<unsigned>(parts), 0);
}

}  // namespace

struct ThreadPool::Team {
  std::vector<std::thread> members;
  std::atomic<uint64_t> round{0};
  std::atomic<int> left{0};
  std::atomic<bool> stop{false};
  struct alignas(64) Taken {
    std::atomic<uint64_t> round{0};  // the last one in which somebody began this part
  };
  std::unique_ptr<Taken[]> taken;
  int64_t count = 0;
  const std::function<void(int, int64_t, int64_t)>* work = nullptr;

  ~Team() {
    stop.store(true, std::memory_order_relaxed);
    round.fetch_add(1, std::memory_order_release);
    round.notify_all();
    for (std::thread& t : members) t.join();
  }

  void part(int thread, int threads) const {
    const int64_t begin = count * thread / threads, end = count * (thread + 1) / threads;
    if (begin < end) (*work)(thread, begin, end);
  }

  // False when somebody else has begun the part. All parts of a round are begun before the next one comes.
  bool begins(int part, uint64_t now) {
    std::atomic<uint64_t>& place = taken[static_cast<size_t>(part)].round;
    uint64_t before = place.load(std::memory_order_acquire);
    return before < now && place.compare_exchange_strong(before, now, std::memory_order_acq_rel);
  }

  void serve(int thread, int threads) {
    uint64_t seen = 0;
    while (true) {
      seen = wait_for_change(round, seen);
      if (stop.load(std::memory_order_relaxed)) return;
      if (!begins(thread, seen)) continue;
      part(thread, threads);
      if (left.fetch_sub(1, std::memory_order_acq_rel) == 1) left.notify_one();
    }
  }
};

ThreadPool::ThreadPool(int threads) : ThreadPool(threads, ThreadTeam{}) {}

ThreadPool::ThreadPool(int threads, const ThreadTeam& team) : borrowed_(team), threads_(threads < 1 ? 1 : threads) {
  if (threads > kMaxThreads) throw RuntimeFailure(FailureKind::resource, fmt::format("{} threads: the limit is {}", threads, kMaxThreads));
  enable_matrix_tiles();  // kernels may use them on any thread
  if (borrowed_.fork != nullptr && threads_ > 1) return;
  team_ = std::make_unique<Team>();
  team_->taken = std::make_unique<Team::Taken[]>(static_cast<size_t>(threads_));
  team_->members.reserve(static_cast<size_t>(threads_));
  for (int t = 1; t < threads_; ++t)
    team_->members.push_back(start_thread([team = team_.get(), t, all = threads_] { team->serve(t, all); }));
}

ThreadPool::~ThreadPool() = default;

void ThreadPool::run(int64_t count, const std::function<void(int, int64_t, int64_t)>& work) {
  if (!team_) return run_borrowed(borrowed_, threads_, count, work);
  team_->count = count;
  team_->work = &work;
  uint64_t round = 0;
  if (threads_ > 1) {
    team_->left.store(threads_ - 1, std::memory_order_relaxed);
    round = team_->round.fetch_add(1, std::memory_order_release) + 1;
    team_->round.notify_all();
  }
  team_->part(0, threads_);
  for (int t = 1; t < threads_; ++t) {
    if (!team_->begins(t, round)) continue;
    team_->part(t, threads_);
    team_->left.fetch_sub(1, std::memory_order_acq_rel);
  }
  for (int left = team_->left.load(std::memory_order_acquire); left > 0;) left = wait_for_change(team_->left, left);
}

}  // namespace einc
