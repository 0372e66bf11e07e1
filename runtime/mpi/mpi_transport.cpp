// SPDX-License-Identifier: Apache-2.0
// MPI as the engine that moves bytes between processes. Sums are einc's own, so that their bits depend neither on the MPI nor on the
// algorithms that it chooses. Counts of MPI are of 32 bits: what is longer goes in pieces.
#include <mpi.h>

#include <algorithm>
#include <cstddef>
#include <cstdlib>
#include <string>
#include <vector>

#include "runtime/mesh/transport.h"

namespace {

constexpr int64_t kPiece = int64_t{1} << 30;

class Requests {
 public:
  // Pieces of one message keep their order, since they have one tag.
  void receive(std::byte* memory, int64_t bytes, int from) {
    for (int64_t at = 0; at < bytes && error_ == MPI_SUCCESS; at += kPiece)
      error_ = MPI_Irecv(memory + at, static_cast<int>(std::min(kPiece, bytes - at)), MPI_BYTE, from, 0, MPI_COMM_WORLD, next());
  }
  void send(const std::byte* memory, int64_t bytes, int to) {
    for (int64_t at = 0; at < bytes && error_ == MPI_SUCCESS; at += kPiece)
      error_ = MPI_Isend(memory + at, static_cast<int>(std::min(kPiece, bytes - at)), MPI_BYTE, to, 0, MPI_COMM_WORLD, next());
  }
  int wait() {
    if (error_ != MPI_SUCCESS) return error_;
    return MPI_Waitall(static_cast<int>(requests_.size()), requests_.data(), MPI_STATUSES_IGNORE);
  }

 private:
  MPI_Request* next() { return &requests_.emplace_back(); }
  std::vector<MPI_Request> requests_;
  int error_ = MPI_SUCCESS;
};

EincTransport transport{};
std::string message;

int exchange(void*, const void* send, const int64_t* send_bytes, void* receive, const int64_t* receive_bytes) {
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
  transport.finish = finish;
  transport.end_all = end_all;
  return &transport;
}
