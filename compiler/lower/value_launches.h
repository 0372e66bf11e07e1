// SPDX-License-Identifier: Apache-2.0
// Which launches of a plan touch a value: what moves to or from other devices is taken as soon as it is made, and waited for where it is
// first read.
#pragma once
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// Numbers of kernels in the list, ascending; collectives are not among them.
std::vector<uint32_t> launches_that_touch(const KernelList& list, const BufferPlan& plan, NodeId value);
std::vector<uint32_t> launches_that_make(const KernelList& list, const BufferPlan& plan, NodeId value);

}  // namespace einc
