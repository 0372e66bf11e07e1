// SPDX-License-Identifier: Apache-2.0
// What a kernel does when it runs once, counted from its loops: independent of the cost tables.
#pragma once
#include <vector>

#include "compiler/lower/kernel.h"

namespace einc {

struct KernelWork {
  int64_t contraction = 0, elementwise = 0, reduction = 0;  // FLOPs as executed: what is computed in two stages counts twice
  int64_t transcendental = 0;                               // of `elementwise`
  int64_t bytes_read = 0, bytes_written = 0;                // each buffer once; what is gathered of a table or replaced in it
  int64_t flops() const { return contraction + elementwise + reduction; }
  KernelWork& operator+=(const KernelWork& more);
};

struct BufferTraffic {
  int64_t read = 0, written = 0;  // bytes
};

struct KernelCount {
  KernelWork work;
  std::vector<BufferTraffic> traffic;  // per buffer of the kernel; scratch has none
};

KernelCount count_kernel(const Kernel& kernel);
KernelWork work_of(const Kernel& kernel);

}  // namespace einc
