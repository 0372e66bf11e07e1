// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/big_stack.h"

#include <pthread.h>

#include <exception>

namespace einc {
namespace {

constexpr size_t kStackBytes = size_t{64} << 20;  // reserved, not touched: only pages in use cost memory

struct Task {
  const std::function<void()>& function;
  std::exception_ptr failure;
};

void* run(void* argument) {
  Task& task = *static_cast<Task*>(argument);
  try {
    task.function();
  } catch (...) {
    task.failure = std::current_exception();
  }
  return nullptr;
}

}  // namespace

void run_on_big_stack(const std::function<void()>& function) {
  Task task{function, nullptr};
  pthread_attr_t attributes;
  pthread_t thread;
  pthread_attr_init(&attributes);
  const bool started = pthread_attr_setstacksize(&attributes, kStackBytes) == 0 && pthread_create(&thread, &attributes, run, &task) == 0;
  pthread_attr_destroy(&attributes);
  if (!started) return function();
  pthread_join(thread, nullptr);
  if (task.failure) std::rethrow_exception(task.failure);
}

}  // namespace einc
