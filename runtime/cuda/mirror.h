// SPDX-License-Identifier: Apache-2.0
// Values of a session's sources on the GPU, brought over when one side reads what the other wrote.
#pragma once
#include <cstddef>
#include <memory>

#include "runtime/cuda/device.h"

namespace einc {

// A param's or state's memory in the host and its like on the GPU. Sessions that share the host's memory share this.
class CudaMirror {
 public:
  // The mirror of so many bytes at `host`, which outlive it, on the GPU that this thread works on. Throws RuntimeFailure: resource; data
  // where another GPU mirrors that memory.
  static std::shared_ptr<CudaMirror> of(std::byte* host, int64_t bytes);
  CudaMirror(std::byte* host, int64_t bytes);
  ~CudaMirror();  // what the GPU wrote last goes to the host
  CudaMirror(const CudaMirror&) = delete;
  CudaMirror& operator=(const CudaMirror&) = delete;

  cuda::DevicePointer address() const { return device_.get(); }
  void host_wrote() { newer_ = Newer::host; }
  void gpu_wrote() { newer_ = Newer::gpu; }
  // Nobody will read the host's memory.
  void abandon() { newer_ = Newer::neither; }
  // The GPU's memory, and the host's, before they return: the caller may write there again at once.
  void update_gpu(cuda::Stream stream);
  void update_host(cuda::Stream stream);

 private:
  enum class Newer : uint8_t { neither, host, gpu };

  const cuda::Gpu& gpu_ = cuda::Gpu::current();
  std::byte* host_;
  size_t bytes_;
  cuda::DeviceMemory device_;
  Newer newer_ = Newer::host;
};

// An input: written by the host alone, in another place each time. It is copied through memory that the GPU reads by itself, on a stream of
// its own, while earlier work goes on.
class CudaInput {
 public:
  explicit CudaInput(int64_t bytes);

  cuda::DevicePointer address() const { return device_.get(); }
  void set_host(const void* host) { host_ = host, written_ = true; }
  void written() { written_ = true; }
  // For work that `stream` is given after this. All work that was given an earlier update is done.
  void update_gpu(cuda::Stream stream, cuda::Stream copies);

 private:
  const void* host_ = nullptr;
  size_t bytes_;
  bool written_ = true;
  cuda::HostMemory staged_;
  cuda::DeviceMemory arriving_, device_;
  cuda::OwnedEvent arrived_;
};

}  // namespace einc
