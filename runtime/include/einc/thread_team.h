// SPDX-License-Identifier: Apache-2.0
// Threads that another library of the process keeps. Two libraries with threads of their own, called in turn, compete for the processors:
// those of the one that has just been left stay awake for a while, waiting for more.
#pragma once

namespace einc {

// The functions are those of OpenMP's runtimes that GCC's programs call: GOMP_parallel, omp_get_thread_num, omp_get_num_threads. All are
// given, or none.
struct ThreadTeam {
  // Calls work(data) on `threads` threads at once, or on fewer, the caller's among them, and returns when all are done.
  void (*fork)(void (*work)(void*), void* data, unsigned threads, unsigned flags) = nullptr;
  int (*index)() = nullptr;  // of the thread that calls it, from 0
  int (*size)() = nullptr;   // how many there are
};

}  // namespace einc
