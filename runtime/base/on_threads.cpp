// SPDX-License-Identifier: Apache-2.0
#include "runtime/base/on_threads.h"

#include <algorithm>
#include <exception>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/base/failure.h"
#include "runtime/base/start_thread.h"

namespace einc {

void on_threads(size_t pieces, int threads, const std::function<void(size_t)>& work) {
  std::mutex mutex;
  size_t next = 0;
  std::exception_ptr failure;
  const auto run = [&] {
    for (;;) {
      size_t piece = 0;
      {
        const std::lock_guard lock(mutex);
        if (next == pieces || failure) return;
        piece = next++;
      }
      try {
        work(piece);
      } catch (...) {
        const std::lock_guard lock(mutex);
        if (!failure) failure = std::current_exception();
      }
    }
  };
  std::vector<std::thread> others;
  try {
    for (size_t t = 1; t < std::min(pieces, static_cast<size_t>(std::max(threads, 1))); ++t) others.push_back(start_thread(run));
  } catch (const RuntimeFailure&) {  // those that there are do all of it
  }
  run();
  for (std::thread& thread : others) thread.join();
  if (failure) std::rethrow_exception(failure);
}

}  // namespace einc
