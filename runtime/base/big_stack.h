// SPDX-License-Identifier: Apache-2.0
// Runs a function on a thread of its own with a stack of known size. Recursion over a program's text is bounded (256
// levels), but how much stack the caller has left is not ours to choose: `ulimit -s` and embedding threads may give little.
#pragma once
#include <pthread.h>

#include <exception>
#include <functional>

namespace einc {

// Calls the function and waits for it; what it throws is thrown here. If no thread can be had, it is called directly.
void run_on_big_stack(const std::function<void()>& function);

// The same beside the caller, who waits later. What the function uses outlives this.
class OnBigStack {
 public:
  explicit OnBigStack(std::function<void()> function);
  ~OnBigStack();  // waits; what was thrown is lost
  OnBigStack(const OnBigStack&) = delete;
  OnBigStack& operator=(const OnBigStack&) = delete;

  void wait();  // once

 private:
  static void* run(void* self);
  void join();

  std::function<void()> function_;
  std::exception_ptr failure_;
  pthread_t thread_{};
  bool runs_ = false;
};

}  // namespace einc
