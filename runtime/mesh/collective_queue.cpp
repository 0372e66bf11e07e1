// SPDX-License-Identifier: Apache-2.0
// Where one has failed, those behind it are not carried out: other processes may never come to them.
#include "runtime/mesh/collective_queue.h"

#include "runtime/base/check.h"
#include "runtime/base/start_thread.h"

namespace einc {

CollectiveQueue::CollectiveQueue(std::function<void(uint32_t number)> carry_out)
    : carry_out_(std::move(carry_out)), thread_(start_thread([this] { serve(); })) {}

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
  EINC_CHECK(started_ == done_ || failure_, "collectives of the run before are left");
  started_ = done_ = 0;
  failure_ = nullptr;
}

void CollectiveQueue::start(uint32_t number) {
  const std::lock_guard lock(mutex_);
  EINC_CHECK(number == started_, "collective {} starts as number {}", number, started_);
  ++started_;
  changed_.notify_all();
}

void CollectiveQueue::wait(uint32_t number, std::unique_lock<std::mutex>& computing) {
  std::unique_lock lock(mutex_);
  if (done_ <= number && !failure_) {
    computing.unlock();
    changed_.wait(lock, [&] { return done_ > number || failure_; });
    lock.unlock();
    computing.lock();
    lock.lock();
  }
  if (done_ <= number) std::rethrow_exception(failure_);
}

void CollectiveQueue::abandon() {
  std::unique_lock lock(mutex_);
  started_ = busy_ ? done_ + 1 : done_;
  changed_.wait(lock, [&] { return !busy_; });
}

void CollectiveQueue::serve() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return ends_ || (done_ < started_ && !failure_); });
    if (ends_) return;
    const uint32_t number = done_;
    busy_ = true;
    lock.unlock();
    std::exception_ptr failure;
    try {
      carry_out_(number);
    } catch (...) {
      failure = std::current_exception();
    }
    lock.lock();
    busy_ = false;
    if (failure)
      failure_ = failure;
    else
      ++done_;
    changed_.notify_all();
  }
}

}  // namespace einc
