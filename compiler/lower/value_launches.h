// SPDX-License-Identifier: Apache-2.0
// Between which launches of a plan a value lies in memory: what moves to or from other devices is taken as soon as it is made, and waited
// for where it is first read.
#pragma once
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// Numbers of kernels in the list, which are a processor's launches.
struct ReadingLaunches {
  uint32_t first = 0, last = 0;  // the last of all where none reads it
};
ReadingLaunches launches_that_read(const KernelList& list, const BufferPlan& plan, NodeId source);

// So many launches make the value; 0: it lies there before the first.
uint32_t launches_that_make(const KernelList& list, const BufferPlan& plan, NodeId value);

}  // namespace einc
