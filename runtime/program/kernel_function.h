// SPDX-License-Identifier: Apache-2.0
// How generated code is called. One call does the points begin .. end-1 of a kernel's domain.
#pragma once
#include <cstdint>

namespace einc {

// A position outside its table: recorded once, reported after the run.
struct IndexFault {
  int32_t launch = -1, site = 0;
  int64_t place = 0, value = 0;  // element of the positions' tensor, and what it held
};

struct KernelArguments {
  void* const* buffers;         // in the order of the kernel's buffers; scratch has the thread's own
  const uint64_t* stream_keys;  // per random stream: the Philox key, first word low
  uint64_t step;                // of the run
  IndexFault* fault;            // of this thread
  int32_t launch;
  void* scratch;  // this thread's own memory, Executable::scratch_bytes
};

using KernelFunction = void(const KernelArguments* arguments, int64_t begin, int64_t end);

// Called by generated code; the name it links to.
inline constexpr const char* kIndexFaultSymbol = "einc_index_fault";
extern "C" void einc_index_fault(const KernelArguments* arguments, int32_t site, int64_t place, int64_t value);

}  // namespace einc
