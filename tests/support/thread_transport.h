// SPDX-License-Identifier: Apache-2.0
// Processes of a mesh as threads of this one, for tests of what they exchange.
#pragma once
#include <barrier>
#include <cstddef>
#include <cstring>
#include <memory>
#include <thread>
#include <vector>

#include "runtime/mesh/transport.h"

namespace einc {

class ThreadTransport {
 public:
  explicit ThreadTransport(int processes) : mail_(static_cast<size_t>(processes)), meeting_(processes) {
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

  static int exchange(void* context, const void* send, const int64_t* send_bytes, void* receive, const int64_t* receive_bytes) {
    const End& end = *static_cast<End*>(context);
    auto& mail = end.all->mail_;
    const auto rank = static_cast<size_t>(end.rank);
    const auto* out = static_cast<const std::byte*>(send);
    for (size_t p = 0; p < mail.size(); out += send_bytes[p], ++p) mail[rank][p].assign(out, out + send_bytes[p]);
    end.all->meeting_.arrive_and_wait();
    int wrong = 0;
    auto* in = static_cast<std::byte*>(receive);
    for (size_t p = 0; p < mail.size(); in += receive_bytes[p], ++p) {
      if (static_cast<int64_t>(mail[p][rank].size()) != receive_bytes[p]) wrong = 1;
      if (wrong == 0 && receive_bytes[p] > 0) std::memcpy(in, mail[p][rank].data(), static_cast<size_t>(receive_bytes[p]));
    }
    end.all->meeting_.arrive_and_wait();
    return wrong;
  }
  static const char* describe(void*, int) { return "the receiver expects other bytes than the sender sent"; }
  static void limit(void*, double) {}
  static void stop(void*) {}
  static void finish(void*) {}
  static void end_all(void*, int) {}

  std::vector<std::vector<std::vector<std::byte>>> mail_;  // by sender and receiver
  std::barrier<> meeting_;
  std::vector<std::unique_ptr<End>> ends_;
};

}  // namespace einc
