// SPDX-License-Identifier: Apache-2.0
// GPUs and memory on them. Everything throws RuntimeFailure (resource).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/gpu_shape.h"
#include "runtime/cuda/driver_api.h"

namespace einc::cuda {

// A GPU of the driver's list; opened when first asked for, and kept until the process ends.
class Gpu {
 public:
  static const Gpu& numbered(int number);
  // Where no number is given: $EINC_CUDA_DEVICE, or the first.
  static const Gpu& get();
  // Before the first get() of a process among several: its number among those of this machine says which GPU it takes.
  static void take_by_local_rank(int rank);
  // That this thread works on, by the innermost GpuScope; get() outside of all.
  static const Gpu& current();

  int number() const { return number_; }
  const std::string& name() const { return name_; }
  const GpuShape& shape() const { return shape_; }
  int64_t memory_bytes() const { return memory_bytes_; }
  int64_t cache_bytes() const { return cache_bytes_; }  // of the L2 cache
  double clock() const { return clock_; }               // of the processors at most, in Hz
  int64_t free_bytes() const;
  Device device() const { return device_; }
  Context context() const { return context_; }

 private:
  explicit Gpu(int number);

  int number_;
  Device device_ = 0;
  Context context_ = nullptr;
  std::string name_;
  GpuShape shape_;
  int64_t memory_bytes_ = 0, cache_bytes_ = 0;
  double clock_ = 0;
};

// While it lives, what its thread asks of the driver is for this GPU; then the thread has the context again that it had before, which may
// be a caller's. Scopes nest. Nothing of the driver's but the list of GPUs is used outside of one. A GPU that has failed says so when it
// is asked for something.
class GpuScope {
 public:
  explicit GpuScope(const Gpu& gpu) noexcept;
  ~GpuScope();
  GpuScope(const GpuScope&) = delete;
  GpuScope& operator=(const GpuScope&) = delete;

 private:
  const Gpu* outer_;
  Context own_, before_ = nullptr;
};

// Owns what `Destroy` (a member of the driver's table) gives back, to the GPU that it was taken from.
template <class T, auto Destroy>
class Handle {
 public:
  Handle() = default;
  Handle(Handle&& other) noexcept : value_(other.value_), gpu_(other.gpu_) { other.value_ = T{}; }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    std::swap(gpu_, other.gpu_);
    return *this;
  }
  ~Handle();
  T get() const { return value_; }
  T* out() {
    gpu_ = &Gpu::current();
    return &value_;
  }
  explicit operator bool() const { return value_ != T{}; }

 private:
  T value_{};
  const Gpu* gpu_ = nullptr;
};

using DeviceMemory = Handle<DevicePointer, &DriverTable::cuMemFree_v2>;
using HostMemory = Handle<void*, &DriverTable::cuMemFreeHost>;  // that copies run to and from while the program goes on
using OwnedStream = Handle<Stream, &DriverTable::cuStreamDestroy_v2>;
using OwnedEvent = Handle<Event, &DriverTable::cuEventDestroy_v2>;
using OwnedLibrary = Handle<Library, &DriverTable::cuLibraryUnload>;
using OwnedGraph = Handle<Graph, &DriverTable::cuGraphDestroy>;
using OwnedGraphExec = Handle<GraphExec, &DriverTable::cuGraphExecDestroy>;

// `what` for the message when the GPU has no room: "the arena of the training step".
DeviceMemory allocate(int64_t bytes, const std::string& what);
HostMemory allocate_host(int64_t bytes);
OwnedStream make_stream();

// What the GPU takes for the work that `work` puts on the stream, by its events; waits for it.
double seconds_on(Stream stream, const std::function<void()>& work);

}  // namespace einc::cuda

#include "runtime/cuda/libraries.h"

namespace einc::cuda {

// Behind the table of the driver, which the kinds of handles above are named by.
template <class T, auto Destroy>
Handle<T, Destroy>::~Handle() {
  if (value_ == T{}) return;
  const GpuScope scope(*gpu_);
  (driver().*Destroy)(value_);
}

}  // namespace einc::cuda
