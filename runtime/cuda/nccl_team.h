// SPDX-License-Identifier: Apache-2.0
// The processes of a mesh whose devices are GPUs, one GPU each, connected by NCCL: one communicator, whose work goes to one stream at a
// time, in the same order in all processes. NCCL only moves bytes.
#pragma once
#include <atomic>
#include <condition_variable>
#include <mutex>
#include <string>
#include <thread>
#include <vector>

#include "runtime/cuda/device.h"
#include "runtime/cuda/nccl_api.h"
#include "runtime/mesh/transport.h"

namespace einc::cuda {

class NcclTeam {
 public:
  // Connects this process, which works on the GPU of Gpu::get(), with the others; once for a process. `processes`: an engine that has
  // connected them already, and hands out NCCL's id; null: NCCL_COMM_ID is in the environment of all. Throws RuntimeFailure (resource).
  static NcclTeam& open(int rank, int size, const EincTransport* processes);
  static NcclTeam* get();  // null: not opened

  // A list of blocks in the GPU's memory that are sent and received at once.
  struct Message {
    DevicePointer memory = 0;
    int64_t bytes = 0;
    int peer = 0;
  };
  void move(const std::vector<Message>& sends, const std::vector<Message>& receives, Stream stream) const;
  // Until the stream is done. A process that fails, or does not come within the limit, ends the wait by RuntimeFailure: LateProcess, at
  // `place`.
  void wait(Stream stream, const std::string& place);
  // How long a wait may take from now on; 0: for ever.
  void limit(double seconds) { limit_s_ = seconds; }
  // What the processes ask of each other besides collectives, over NCCL too.
  const EincTransport* transport() const { return &transport_; }
  int rank() const { return transport_.rank; }

 private:
  NcclTeam(int rank, int size, const NcclId& id);
  int exchange(const void* send, const int64_t* send_bytes, void* receive, const int64_t* receive_bytes);
  void watch();
  void give_up(const std::string& failure);

  const Gpu& gpu_;
  NcclComm comm_ = nullptr;
  EincTransport transport_{};
  OwnedStream stream_;
  DeviceMemory sent_, received_;
  int64_t room_ = 0;
  std::atomic<double> limit_s_ = 0;
  std::mutex mutex_;
  std::condition_variable changed_;
  bool waits_ = false, late_ = false;
  std::string failure_;  // why the communicator is aborted; empty: it is not
  std::thread watcher_;
};

}  // namespace einc::cuda
