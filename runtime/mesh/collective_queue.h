// SPDX-License-Identifier: Apache-2.0
// Carries out the collectives of a run beside its launches: one thread, in the order in which they are started. That order is the same in
// all processes, so none waits for another that waits for it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
#include <deque>
#include <exception>
#include <functional>
#include <mutex>
#include <thread>

#include "runtime/cpu/thread_pool.h"

namespace einc {

// The threads of a program, which computes on them or lends them while it waits.
class LentPool {
 public:
  explicit LentPool(std::shared_ptr<ThreadPool> pool) : pool_(std::move(pool)), alone_(1) {}
  // Who computes holds this.
  std::mutex& computing() { return computing_; }
  // Calls work(pool): of all threads where nobody computes, else of the caller alone.
  template <class Work>
  void run(Work work) {
    const std::unique_lock lent(computing_, std::try_to_lock);
    work(lent.owns_lock() ? *pool_ : alone_);
  }

 private:
  std::shared_ptr<ThreadPool> pool_;
  ThreadPool alone_;
  std::mutex computing_;
};

class CollectiveQueue {
 public:
  CollectiveQueue();
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;

  // Of a run; nothing of a run before is left.
  void begin();
  // `work`: on the queue's own thread, behind all that was started before. Its number in the run.
  uint32_t start(std::function<void()> work);
  // Until it is carried out; what it threw is thrown here. `computing`: given back meanwhile.
  void wait(uint32_t number, std::unique_lock<std::mutex>& computing);
  // Starts no more of them, and returns when the one in progress is over.
  void abandon();

 private:
  bool is_over(uint32_t number) const { return done_ > number || failed_; }
  void serve();

  std::mutex mutex_;
  std::condition_variable changed_;
  std::deque<std::function<void()>> left_;  // the first may be in progress
  uint32_t started_ = 0;
  std::atomic<uint32_t> done_ = 0;
  std::atomic<bool> failed_ = false;
  bool busy_ = false, ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace einc
