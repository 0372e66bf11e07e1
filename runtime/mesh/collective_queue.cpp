// SPDX-License-Identifier: Apache-2.0
// Where one has failed, those behind it are not carried out: other processes may never come to them.
#include "runtime/mesh/collective_queue.h"

#include <chrono>

#include "runtime/base/check.h"
#include "runtime/base/start_thread.h"

namespace einc {
namespace {

// A thread that sleeps is woken on the processor of the one that wakes it, which then stands still although others are idle (Linux 6.18,
// two cores): on a link that is always busy a step of 165 ms took 190. So it stays awake for this long, and leaves its core to who asks for
// it.
constexpr auto kAwakeInWait = std::chrono::milliseconds(10);

}  // namespace

CollectiveQueue::CollectiveQueue() : thread_(start_thread([this] { serve(); })) {}

CollectiveQueue::~CollectiveQueue() {
  {
    const std::lock_guard lock(mutex_);
    ends_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void CollectiveQueue::begin() {
  const std::lock_guard lock(mutex_);
  EINC_CHECK(started_ == done_ || failed_, "collectives of the run before are left");
  left_.clear();
  started_ = done_ = 0;
  failed_ = false;
}

uint32_t CollectiveQueue::start(std::function<void()> work) {
  const std::lock_guard lock(mutex_);
  left_.push_back(std::move(work));
  changed_.notify_all();
  return started_++;
}

void CollectiveQueue::wait(uint32_t number, std::unique_lock<std::mutex>& computing) {
  if (!is_over(number)) {
    computing.unlock();
    const auto begin = std::chrono::steady_clock::now();
    while (!is_over(number) && std::chrono::steady_clock::now() - begin < kAwakeInWait) std::this_thread::yield();
    {
      std::unique_lock lock(mutex_);
      changed_.wait(lock, [&] { return is_over(number); });
    }
    computing.lock();
  }
  if (done_ > number) return;
  const std::lock_guard lock(mutex_);
  std::rethrow_exception(failure_);
}

void CollectiveQueue::abandon() {
  std::unique_lock lock(mutex_);
  started_ = done_ + (busy_ ? 1 : 0);
  changed_.wait(lock, [&] { return !busy_; });
}

void CollectiveQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || (done_ < started_ && !failed_); });
    if (ends_) return;
    const std::function<void()> work = std::move(left_.front());
    left_.pop_front();
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      work();
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (failure)
      failure_ = failure, failed_ = true;
    else
      ++done_;
    changed_.notify_all();
  }
}

}  // namespace einc
