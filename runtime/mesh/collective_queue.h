// SPDX-License-Identifier: Apache-2.0
// Carries out the collectives of a run beside its launches: one thread, in the order in which they are started. That order is the same in
// all processes, so none waits for another that waits for it.
#pragma once
#include <atomic>
#include <condition_variable>
#include <cstdint>
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
  // `carry_out(n)`: collective number n of a run, on the queue's own thread.
  explicit CollectiveQueue(std::function<void(uint32_t number)> carry_out);
  ~CollectiveQueue();
  CollectiveQueue(const CollectiveQueue&) = delete;
  CollectiveQueue& operator=(const CollectiveQueue&) = delete;

  // A run starts its collectives 0, 1, 2, ... Nothing of a run before is left.
  void begin();
  void start(uint32_t number);
  // Until it is carried out; what it threw is thrown here. `computing`: given back meanwhile.
  void wait(uint32_t number, std::unique_lock<std::mutex>& computing);
  // Starts no more of them, and returns when the one in progress is over.
  void abandon();

 private:
  bool is_over(uint32_t number) const { return done_ > number || failed_; }
  void serve();

  std::function<void(uint32_t)> carry_out_;
  std::mutex mutex_;
  std::condition_variable changed_;
  uint32_t started_ = 0;
  std::atomic<uint32_t> done_ = 0;
  std::atomic<bool> failed_ = false;
  bool busy_ = false, ends_ = false;
  std::exception_ptr failure_;
  std::thread thread_;
};

}  // namespace einc
