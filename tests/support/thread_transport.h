// SPDX-License-Identifier: Apache-2.0
// Processes of a mesh as threads of this one, for tests of what they exchange. A sender waits until the receiver has taken all, so that
// processes whose exchanges stand in orders that do not fit wait for ever, as they might with MPI.
#pragma once
#include <condition_variable>
#include <cstddef>
#include <cstring>
#include <memory>
#include <mutex>
#include <thread>
#include <vector>

#include "runtime/mesh/transport.h"

namespace einc {

class ThreadTransport {
 public:
  explicit ThreadTransport(int processes) : mail_(static_cast<size_t>(processes)) {
    for (int p = 0; p < processes; ++p) {
      mail_[static_cast<size_t>(p)].resize(static_cast<size_t>(processes));
      ends_.push_back(std::make_unique<End>(End{this, p, {}}));
      ends_.back()->table = {EINC_TRANSPORT_VERSION, p, processes, ends_.back().get(), exchange, describe, limit, stop, finish, end_all};
    }
  }
  // Calls work(transport of process p) for all of them at once.
  template <class Work>
  void run(Work work) {
    std::vector<std::jthread> threads;
    for (const auto& end : ends_) threads.emplace_back([&work, &end] { work(end->table); });
  }

 private:
  struct End {
    ThreadTransport* all;
    int rank;
    EincTransport table;
  };
  // From one process to another: empty when it is taken.
  using Letter = std::vector<std::byte>;

  static int exchange(void* context, const void* send, const int64_t* send_bytes, void* receive, const int64_t* receive_bytes) {
    const End& end = *static_cast<End*>(context);
    return end.all->exchange(static_cast<size_t>(end.rank), static_cast<const std::byte*>(send), send_bytes,
                             static_cast<std::byte*>(receive), receive_bytes);
  }
  int exchange(size_t rank, const std::byte* out, const int64_t* send_bytes, std::byte* in, const int64_t* receive_bytes) {
    std::unique_lock lock(mutex_);
    for (size_t p = 0; p < mail_.size(); out += send_bytes[p], ++p) mail_[rank][p].assign(out, out + send_bytes[p]);
    moved_.notify_all();
    int wrong = 0;
    for (size_t p = 0; p < mail_.size(); in += receive_bytes[p], ++p) {
      if (receive_bytes[p] == 0) continue;
      Letter& letter = mail_[p][rank];
      moved_.wait(lock, [&] { return !letter.empty(); });
      if (static_cast<int64_t>(letter.size()) == receive_bytes[p])
        std::memcpy(in, letter.data(), letter.size());
      else
        wrong = 1;
      letter.clear();
      moved_.notify_all();
    }
    for (const Letter& letter : mail_[rank]) moved_.wait(lock, [&] { return letter.empty(); });
    return wrong;
  }
  static const char* describe(void*, int) { return "the receiver expects other bytes than the sender sent"; }
  static void limit(void*, double) {}
  static void stop(void*) {}
  static void finish(void*) {}
  static void end_all(void*, int) {}

  std::mutex mutex_;
  std::condition_variable moved_;
  std::vector<std::vector<Letter>> mail_;  // by sender and receiver
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace einc
