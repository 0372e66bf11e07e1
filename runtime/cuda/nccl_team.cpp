// SPDX-License-Identifier: Apache-2.0
// NCCL hangs where a process is missing. So a thread watches whoever waits: it asks for NCCL's errors, and aborts the communicator on one,
// or when time is up. Where the abort hangs too, the process ends.
#include "runtime/cuda/nccl_team.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <chrono>
#include <cstring>
#include <memory>

#include "runtime/base/failure.h"
#include "runtime/cuda/open_library.h"
#include "runtime/mesh/processes.h"

namespace einc::cuda {
namespace {

using WatchClock = std::chrono::steady_clock;
constexpr std::chrono::milliseconds kAsk{20};
constexpr std::chrono::seconds kAbortTakes{5};
constexpr int kFailed = 1, kLate = 2;

NcclTeam*& opened_team() {
  static NcclTeam* team = nullptr;
  return team;
}

NcclTeam& team_of(void* context) { return *static_cast<NcclTeam*>(context); }

}  // namespace

const NcclTable& nccl() {
  static const NcclTable table = [] {
    const OpenLibrary library({"libnccl.so.2"}, "NCCL");
    NcclTable opened;
#define EINC_TAKE_NCCL(name, arguments) opened.name = reinterpret_cast<decltype(opened.name)>(library.function(#name));
    EINC_NCCL(EINC_TAKE_NCCL)
#undef EINC_TAKE_NCCL
    opened.ncclGetErrorString = reinterpret_cast<decltype(opened.ncclGetErrorString)>(library.function("ncclGetErrorString"));
    return opened;
  }();
  return table;
}

void check_nccl(Result result, const char* call) {
  if (result != 0 && result != kNcclInProgress)
    throw RuntimeFailure(FailureKind::resource, fmt::format("NCCL failed: {}: {}", call, nccl().ncclGetErrorString(result)));
}

NcclTeam* NcclTeam::get() { return opened_team(); }

// To the process' end: its watcher may be at work whenever that is.
NcclTeam& NcclTeam::open(int rank, int size, const EincTransport* processes) {
  NcclId id{};
  if (processes == nullptr || rank == 0) EINC_NCCL_CALL(ncclGetUniqueId, &id);
  if (processes != nullptr) {
    std::vector<NcclId> sent(static_cast<size_t>(size), id), all(static_cast<size_t>(size));
    const std::vector<int64_t> bytes(static_cast<size_t>(size), sizeof id);
    einc::exchange(*processes, sent.data(), bytes, all.data(), bytes);
    id = all.front();
  }
  opened_team() = new NcclTeam(rank, size, id);
  return *opened_team();
}

NcclTeam::NcclTeam(int rank, int size, const NcclId& id) : gpu_(Gpu::get()) {
  const GpuScope scope(gpu_);
  stream_ = make_stream();
  EINC_NCCL_CALL(ncclCommInitRank, &comm_, size, id, rank);
  transport_ = {EINC_TRANSPORT_VERSION, rank, size, this, nullptr, nullptr, nullptr, nullptr, nullptr, nullptr};
  transport_.exchange = [](void* context, const void* send, const int64_t* send_bytes, void* receive, const int64_t* receive_bytes) {
    return team_of(context).exchange(send, send_bytes, receive, receive_bytes);
  };
  transport_.describe = [](void* context, int error) {
    return error == kLate ? "a rank has not come to it in time (--timeout)" : team_of(context).failure_.c_str();
  };
  transport_.limit = [](void* context, double seconds) { team_of(context).limit(seconds); };
  transport_.stop = [](void* context) { team_of(context).give_up("it is given up"); };
  transport_.finish = [](void* context) { nccl().ncclCommDestroy(team_of(context).comm_); };
  // Others learn of it by NCCL, by their launcher, or when their time is up.
  transport_.end_all = [](void*, int status) { _exit(status); };
  watcher_ = std::thread([this] { watch(); });
}

void NcclTeam::move(const std::vector<Message>& sends, const std::vector<Message>& receives, Stream stream) const {
  if (sends.empty() && receives.empty()) return;
  EINC_NCCL_CALL(ncclGroupStart);
  for (const Message& m : sends)
    EINC_NCCL_CALL(ncclSend, reinterpret_cast<const void*>(m.memory), static_cast<size_t>(m.bytes), kNcclBytes, m.peer, comm_, stream);
  for (const Message& m : receives)
    EINC_NCCL_CALL(ncclRecv, reinterpret_cast<void*>(m.memory), static_cast<size_t>(m.bytes), kNcclBytes, m.peer, comm_, stream);
  EINC_NCCL_CALL(ncclGroupEnd);
}

void NcclTeam::wait(Stream stream, const std::string& place) {
  std::unique_lock lock(mutex_);
  const bool watched = waits_ = failure_.empty();
  lock.unlock();
  changed_.notify_all();
  const Result result = watched ? driver().cuStreamSynchronize(stream) : 0;
  lock.lock();
  waits_ = false;
  changed_.notify_all();
  if (late_) throw LateProcess(LateProcess::kUnknown, place);
  if (!failure_.empty()) throw RuntimeFailure(FailureKind::resource, "another process is lost: " + failure_);
  check(result, "cuStreamSynchronize");
}

void NcclTeam::watch() {
  std::unique_lock lock(mutex_);
  for (;;) {
    changed_.wait(lock, [&] { return waits_; });
    const auto begin = WatchClock::now();
    while (waits_ && failure_.empty()) {
      changed_.wait_for(lock, kAsk);
      Result error = 0;
      if (nccl().ncclCommGetAsyncError(comm_, &error) != 0 || (error != 0 && error != kNcclInProgress))
        failure_ = nccl().ncclGetErrorString(error);
      else if (limit_s_ > 0 && WatchClock::now() - begin > std::chrono::duration<double>(limit_s_))
        failure_ = "time is up", late_ = true;
    }
    if (failure_.empty()) continue;
    // Until this abort is over nobody ends the process but the one who waits.
    std::thread([comm = comm_] { nccl().ncclCommAbort(comm); }).detach();
    if (changed_.wait_for(lock, kAbortTakes, [&] { return !waits_; })) return;
    fmt::print(stderr, "einc: process {} of {}: NCCL does not end: {}\n", rank(), transport_.size, failure_);
    _exit(4);
  }
}

void NcclTeam::give_up(const std::string& failure) {
  const std::lock_guard lock(mutex_);
  if (failure_.empty()) failure_ = failure;
}

int NcclTeam::exchange(const void* send, const int64_t* send_bytes, void* receive, const int64_t* receive_bytes) {
  try {
    const GpuScope scope(gpu_);
    int64_t out = 0, in = 0;
    std::vector<Message> sends, receives;
    for (int p = 0; p < transport_.size; ++p) out += send_bytes[p], in += receive_bytes[p];
    if (const int64_t bytes = std::max(out, in); bytes > room_) {
      sent_ = allocate(bytes, "what processes send"), received_ = allocate(bytes, "what processes receive");
      room_ = bytes;
    }
    if (out > 0) EINC_CUDA(cuMemcpyHtoDAsync_v2, sent_.get(), send, static_cast<size_t>(out), stream_.get());
    out = in = 0;
    for (int p = 0; p < transport_.size; out += send_bytes[p], in += receive_bytes[p], ++p) {
      const DevicePointer from = sent_.get() + static_cast<uint64_t>(out), to = received_.get() + static_cast<uint64_t>(in);
      if (p == rank() && send_bytes[p] > 0) EINC_CUDA(cuMemcpyDtoDAsync_v2, to, from, static_cast<size_t>(send_bytes[p]), stream_.get());
      if (p == rank()) continue;
      if (send_bytes[p] > 0) sends.push_back({from, send_bytes[p], p});
      if (receive_bytes[p] > 0) receives.push_back({to, receive_bytes[p], p});
    }
    move(sends, receives, stream_.get());
    if (in > 0) EINC_CUDA(cuMemcpyDtoHAsync_v2, receive, received_.get(), static_cast<size_t>(in), stream_.get());
    wait(stream_.get(), "the next exchange");
    return 0;
  } catch (const LateProcess&) {
    return kLate;
  } catch (const RuntimeFailure& failure) {
    give_up(failure.what());
    return kFailed;
  }
}

}  // namespace einc::cuda
