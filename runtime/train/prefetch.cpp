// SPDX-License-Identifier: Apache-2.0
#include "runtime/train/prefetch.h"

#include "runtime/base/start_thread.h"

namespace einc {
namespace {

constexpr size_t kAlignment = 64;

size_t aligned(size_t bytes) { return (bytes + kAlignment - 1) / kAlignment * kAlignment; }

}  // namespace

Prefetch::Prefetch(std::shared_ptr<const Batches> batches, std::vector<TensorInfo> inputs, uint64_t first)
    : batches_(std::move(batches)), inputs_(std::move(inputs)), first_(first) {
  size_t bytes = kAlignment;
  for (const TensorInfo& input : inputs_) bytes += 2 * aligned(static_cast<size_t>(input.bytes()));
  memory_ = std::make_unique<std::byte[]>(bytes);
  void* begin = memory_.get();
  std::byte* at = static_cast<std::byte*>(std::align(kAlignment, 1, begin, bytes));
  for (std::vector<InputSlot>& slots : slots_)
    for (const TensorInfo& input : inputs_) {
      slots.push_back({&input, at});
      at += aligned(static_cast<size_t>(input.bytes()));
    }
  thread_ = start_thread([this] { fill_ahead(); });
}

Prefetch::~Prefetch() {
  {
    const std::lock_guard lock(mutex_);
    stops_ = true;
  }
  changed_.notify_all();
  thread_.join();
}

void Prefetch::fill_ahead() {
  for (uint64_t i = 0;; ++i) {
    {
      std::unique_lock lock(mutex_);
      // Batch i - 2 lies where batch i will, and is in use until batch i - 1 has been taken.
      changed_.wait(lock, [&] { return stops_ || taken_ >= i; });
      if (stops_) return;
    }
    std::exception_ptr failure;
    try {
      batches_->fill(first_ + i, slots_[i % 2]);
    } catch (...) {
      failure = std::current_exception();
    }
    const std::lock_guard lock(mutex_);
    failure_ = failure;
    if (!failure) ++filled_;
    changed_.notify_all();
    if (failure) return;
  }
}

std::span<const InputSlot> Prefetch::next() {
  std::unique_lock lock(mutex_);
  const uint64_t batch = taken_;
  changed_.wait(lock, [&] { return filled_ > batch || failure_; });
  if (filled_ <= batch) std::rethrow_exception(failure_);
  ++taken_;
  changed_.notify_all();
  return slots_[batch % 2];
}

}  // namespace einc
