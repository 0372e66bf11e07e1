// What a kernel does when it runs once, counted from its loops: independent of the cost tables.
#pragma once
#include "compiler/lower/kernel.h"

namespace einc {

struct KernelWork {
  int64_t contraction = 0, elementwise = 0, reduction = 0;  // FLOPs as executed: what is computed in two stages counts twice
  int64_t bytes_read = 0, bytes_written = 0;                // each buffer once; what is gathered of a table or replaced in it
  int64_t flops() const { return contraction + elementwise + reduction; }
};

KernelWork work_of(const Kernel& kernel);

}  // namespace einc
