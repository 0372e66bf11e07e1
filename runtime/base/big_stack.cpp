// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/big_stack.h"

namespace einc {
namespace {

constexpr size_t kStackBytes = size_t{64} << 20;  // reserved, not touched: only pages in use cost memory

}  // namespace

void* OnBigStack::run(void* self) {
  OnBigStack& task = *static_cast<OnBigStack*>(self);
  try {
    task.function_();
  } catch (...) {
    task.failure_ = std::current_exception();
  }
  return nullptr;
}

OnBigStack::OnBigStack(std::function<void()> function) : function_(std::move(function)) {
  pthread_attr_t attributes;
  pthread_attr_init(&attributes);
  runs_ = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 && pthread_create(&thread_, &attributes, run, this) == 0;
  pthread_attr_destroy(&attributes);
  if (!runs_) run(this);
}

OnBigStack::~OnBigStack() { join(); }

void OnBigStack::join() {
  if (runs_) pthread_join(thread_, nullptr);
  runs_ = false;
}

void OnBigStack::wait() {
  join();
  if (failure_) std::rethrow_exception(failure_);
}

void run_on_big_stack(const std::function<void()>& function) { OnBigStack(function).wait(); }

}  // namespace einc
