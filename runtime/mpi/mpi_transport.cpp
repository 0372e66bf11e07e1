// SPDX-License-Identifier: Apache-2.0
// MPI as the engine that moves bytes between processes. Sums are einc's own, so that their bits depend neither on the MPI nor on the
// algorithms that it chooses. Counts of MPI are of 32 bits: what is longer goes in pieces.
#include <mpi.h>

#include <algorithm>
#include <atomic>
#include <chrono>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <thread>
#include <vector>

#include "runtime/mesh/transport.h"

namespace {

constexpr int64_t kPiece = int64_t{1} << 30;

// A thread that waits for others asks often at first, and then sleeps in between: the launches of the program want its core. Bytes move
// while it asks.
constexpr std::chrono::microseconds kAskOften{200}, kSleep{50};

std::atomic<bool> stopped = false;
double limit_s = 0;

class Requests {
 public:
  // Pieces of one message keep their order, since they have one tag.
  void receive(std::byte* memory, int64_t bytes, int from) {
    for (int64_t at = 0; at < bytes && error_ == MPI_SUCCESS; at += kPiece)
      error_ = MPI_Irecv(memory + at, static_cast<int>(std::min(kPiece, bytes - at)), MPI_BYTE, from, 0, MPI_COMM_WORLD, next(from));
  }
  void send(const std::byte* memory, int64_t bytes, int to) {
    for (int64_t at = 0; at < bytes && error_ == MPI_SUCCESS; at += kPiece)
      error_ = MPI_Isend(memory + at, static_cast<int>(std::min(kPiece, bytes - at)), MPI_BYTE, to, 0, MPI_COMM_WORLD, next(to));
  }
  int wait() {
    const auto begin = std::chrono::steady_clock::now();
    for (int done = 0; error_ == MPI_SUCCESS;) {
      error_ = MPI_Testall(static_cast<int>(requests_.size()), requests_.data(), &done, MPI_STATUSES_IGNORE);
      if (done || error_ != MPI_SUCCESS) break;
      if (stopped) return EINC_TRANSPORT_STOPPED;
      const auto waited = std::chrono::steady_clock::now() - begin;
      if (limit_s > 0 && waited > std::chrono::duration<double>(limit_s)) return -1 - first_missing();
      if (waited < kAskOften)
        std::this_thread::yield();
      else
        std::this_thread::sleep_for(kSleep);
    }
    return error_;
  }

 private:
  MPI_Request* next(int process) {
    processes_.push_back(process);
    return &requests_.emplace_back();
  }
  // What comes from it stands before what goes to it.
  int first_missing() {
    for (size_t i = 0; i < requests_.size(); ++i) {
      int done = 0;
      MPI_Test(&requests_[i], &done, MPI_STATUS_IGNORE);
      if (!done) return processes_[i];
    }
    return processes_.back();  // the last came just now
  }

  std::vector<MPI_Request> requests_;
  std::vector<int> processes_;  // of each, the other end
  int error_ = MPI_SUCCESS;
};

EincTransport transport{};
std::string message;

int exchange(void*, const void* send, const int64_t* send_bytes, void* receive, const int64_t* receive_bytes) {
  if (stopped) return EINC_TRANSPORT_STOPPED;
  Requests requests;
  auto* in = static_cast<std::byte*>(receive);
  for (int p = 0; p < transport.size; in += receive_bytes[p], ++p) requests.receive(in, receive_bytes[p], p);
  const auto* out = static_cast<const std::byte*>(send);
  for (int p = 0; p < transport.size; out += send_bytes[p], ++p) requests.send(out, send_bytes[p], p);
  return requests.wait();
}

const char* describe(void*, int error) {
  message.resize(MPI_MAX_ERROR_STRING);
  int length = 0;
  MPI_Error_string(error, message.data(), &length);
  message.resize(static_cast<size_t>(length));
  return message.c_str();
}

void limit(void*, double seconds) { limit_s = seconds; }
void stop(void*) { stopped = true; }

void finish(void*) { MPI_Finalize(); }

void end_all(void*, int status) {
  MPI_Abort(MPI_COMM_WORLD, status);
  std::_Exit(status);
}

}  // namespace

extern "C" __attribute__((visibility("default"))) const EincTransport* einc_open_transport() {
  int granted = 0;
  // Calls come from one thread at a time, but not from the one that begins.
  if (MPI_Init_thread(nullptr, nullptr, MPI_THREAD_SERIALIZED, &granted) != MPI_SUCCESS || granted < MPI_THREAD_SERIALIZED) return nullptr;
  MPI_Comm_set_errhandler(MPI_COMM_WORLD, MPI_ERRORS_RETURN);
  transport.version = EINC_TRANSPORT_VERSION;
  MPI_Comm_rank(MPI_COMM_WORLD, &transport.rank);
  MPI_Comm_size(MPI_COMM_WORLD, &transport.size);
  transport.exchange = exchange;
  transport.describe = describe;
  transport.limit = limit;
  transport.stop = stop;
  transport.finish = finish;
  transport.end_all = end_all;
  return &transport;
}
