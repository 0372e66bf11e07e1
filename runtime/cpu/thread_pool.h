// SPDX-License-Identifier: Apache-2.0
// A fixed team of threads that divides index ranges statically: part k of n gets [k*count/n, (k+1)*count/n), whoever is
// early or late. A part belongs to thread k, unless the caller has done its own before that thread began: it then does that part too, as
// when other programs keep the processors busy. Or the team is another library's, whose threads would wait awake beside ours.
#pragma once
#include <einc/thread_team.h>

#include <cstdint>
#include <functional>
#include <memory>

namespace einc {

inline constexpr int kMaxThreads = 1024;  // of a pool: above what machines have, below what brings a system to its knees

class ThreadPool {
 public:
  // The caller is thread 0; threads - 1 more are started. Throws RuntimeFailure (resource): above kMaxThreads, or the system refuses one.
  explicit ThreadPool(int threads);
  // The same parts on the threads of `team`; where it gives fewer than asked for, each does several. Starts none of its own, but
  // where the team is empty.
  ThreadPool(int threads, const ThreadTeam& team);
  ~ThreadPool();
  ThreadPool(const ThreadPool&) = delete;
  ThreadPool& operator=(const ThreadPool&) = delete;

  int size() const { return threads_; }

  // Calls work(k, begin, end) for every part k that is not empty, on a thread of its own or the caller's, and returns when all are done.
  void run(int64_t count, const std::function<void(int thread, int64_t begin, int64_t end)>& work);

 private:
  struct Team;
  std::unique_ptr<Team> team_;
  ThreadTeam borrowed_;
  int threads_;
};

}  // namespace einc
