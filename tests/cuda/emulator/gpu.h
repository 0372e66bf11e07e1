// SPDX-License-Identifier: Apache-2.0
// What the functions of the emulated GPU share: its memory, what it counts, and work that waits in streams.
#pragma once
#include <functional>
#include <mutex>
#include <string>

#include "device_memory.h"
#include "runtime/cuda/driver_api.h"

namespace emulator {

using einc::cuda::Result;
inline constexpr Result kInvalidValue = 1, kOutOfMemory = 2, kInvalidImage = 200, kInvalidContext = 201, kInvalidHandle = 400,
                        kNotFound = 500, kNotReady = 600, kLaunchFailed = 719, kWrongCapture = 900, kCaptureBroken = 901,
                        kCaptureUnjoined = 904, kCaptureIsolated = 905, kWrongThread = 908;

using Work = std::function<Result()>;

struct Gpu {
  DeviceMemoryTable memory;
  unsigned order = 0;
  unsigned long long threads = 0;
  std::string failure;  // of the last call that failed, for cuGetErrorString
};
Gpu& gpu();

// Held by every function of the libraries; counts it.
class Call {
 public:
  explicit Call(const char* function);

 private:
  std::lock_guard<std::recursive_mutex> lock_;
};

Result fail(Result result, const std::string& why);
// The context that is this thread's own; none at first.
einc::cuda::Context current_context();
int device_of(einc::cuda::Context context);
void note_kernel(einc::cuda::Context context);
// Not 0 on a thread that has made no context its own.
Result needs_context();
// As needs_context; and what may not be done while this thread captures a stream breaks the capture.
Result unsafe_in_capture(const char* what);
// Runs when somebody waits for the stream, or becomes part of the graph that is captured from it.
Result give(einc::cuda::Stream stream, Work work);
// What the stream is given next is a product with an epilogue, or a plug-in's attention.
void note_epilogue(einc::cuda::Stream stream);
bool is_captured(einc::cuda::Stream stream);
Result check_memory(uint64_t address, size_t bytes);

}  // namespace emulator
