// SPDX-License-Identifier: Apache-2.0
// A link of a chosen speed that costs no processor: whoever exchanges sleeps as long as his bytes would take. Around another transport, or
// as one of several processes of which the others are imagined: these send what is sent to them.
#pragma once
#include <algorithm>
#include <chrono>
#include <cstring>
#include <thread>
#include <vector>

#include "runtime/mesh/transport.h"

namespace einc {

class FakeLink {
 public:
  explicit FakeLink(const EincTransport& inner) : inner_(&inner), table_(inner) { set_functions(); }
  explicit FakeLink(int processes) {
    table_.version = EINC_TRANSPORT_VERSION;
    table_.size = processes;
    set_functions();
  }
  FakeLink(const FakeLink&) = delete;
  FakeLink& operator=(const FakeLink&) = delete;

  const EincTransport& table() const { return table_; }
  // Of what a process sends; 0: no bytes take time. Not while an exchange goes on.
  void set_bytes_per_second(double speed) { speed_ = speed; }

 private:
  void set_functions() {
    table_.context = this;
    table_.exchange = exchange;
    table_.describe = [](void*, int) { return "the link's other end has failed"; };
    table_.limit = [](void*, double) {};
    table_.stop = [](void*) {};
    table_.finish = [](void*) {};
    table_.end_all = [](void*, int) {};
  }

  static int exchange(void* context, const void* send, const int64_t* send_bytes, void* receive, const int64_t* receive_bytes) {
    FakeLink& link = *static_cast<FakeLink*>(context);
    const auto begin = std::chrono::steady_clock::now();
    const EincTransport& table = link.table_;
    int64_t sent = 0;
    for (int p = 0; p < table.size; ++p) sent += p == table.rank ? 0 : send_bytes[p];
    const int error =
        link.inner_
            ? link.inner_->exchange(link.inner_->context, send, send_bytes, receive, receive_bytes)
            : (reflect(table.size, static_cast<const std::byte*>(send), send_bytes, static_cast<std::byte*>(receive), receive_bytes), 0);
    if (link.speed_ > 0) std::this_thread::sleep_until(begin + std::chrono::duration<double>(static_cast<double>(sent) / link.speed_));
    return error;
  }

  static void reflect(int processes, const std::byte* send, const int64_t* send_bytes, std::byte* receive, const int64_t* receive_bytes) {
    for (int p = 0; p < processes; send += send_bytes[p], receive += receive_bytes[p], ++p) {
      const auto same = static_cast<size_t>(std::min(send_bytes[p], receive_bytes[p]));
      if (same > 0) std::memcpy(receive, send, same);
      if (static_cast<size_t>(receive_bytes[p]) > same) std::memset(receive + same, 0, static_cast<size_t>(receive_bytes[p]) - same);
    }
  }

  const EincTransport* inner_ = nullptr;
  EincTransport table_{};
  double speed_ = 0;
};

}  // namespace einc
