// A GPU and memory on it. Everything throws RuntimeFailure (resource).
#pragma once
#include <cstddef>
#include <cstdint>
#include <functional>
#include <string>

#include "runtime/base/gpu_shape.h"
#include "runtime/cuda/driver_api.h"

namespace einc::cuda {

// The GPU of this process: number $EINC_CUDA_DEVICE of the driver's list, or the first; opened when first asked for.
class Gpu {
 public:
  static const Gpu& get();

  const std::string& name() const { return name_; }
  const GpuShape& shape() const { return shape_; }
  int64_t memory_bytes() const { return memory_bytes_; }
  int64_t free_bytes() const;
  Device device() const { return device_; }
  // To be called on each thread before it uses anything of the driver's; `enter` where nothing may be thrown.
  void make_current() const;
  static void enter() noexcept;

 private:
  Gpu();

  Device device_ = 0;
  Context context_ = nullptr;
  std::string name_;
  GpuShape shape_;
  int64_t memory_bytes_ = 0;
};

// Owns what `Destroy` (a member of the driver's table) gives back.
template <class T, auto Destroy>
class Handle {
 public:
  Handle() = default;
  explicit Handle(T value) : value_(value) {}
  Handle(Handle&& other) noexcept : value_(other.value_) { other.value_ = T{}; }
  Handle& operator=(Handle&& other) noexcept {
    std::swap(value_, other.value_);
    return *this;
  }
  ~Handle();
  T get() const { return value_; }
  T* out() { return &value_; }
  explicit operator bool() const { return value_ != T{}; }

 private:
  T value_{};
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

template <class T, auto Destroy>
einc::cuda::Handle<T, Destroy>::~Handle() {
  if (value_ == T{}) return;
  Gpu::enter();
  (driver().*Destroy)(value_);
}
