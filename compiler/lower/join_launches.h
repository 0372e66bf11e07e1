// SPDX-License-Identifier: Apache-2.0
// The pass `join_launches`: launches of one kernel, like a step's updates of all params, as one launch of all their blocks.
#pragma once
#include "compiler/lower/bound_graph.h"
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"

namespace einc {

// Launches that may run as early as another of the same kernel run with it (KernelList::runs_with): nothing in between, nor an alternative
// there, touches what they write or writes what they touch, they draw no random numbers and check no positions. What changes params and
// states joins only such. Neither products of a library nor parts of alternatives join, nor scans, nor attention, whose kernels may work in
// memory that all launches share.
void join_launches(const BoundGraph& graph, const BufferPlan& plan, KernelList& list);

}  // namespace einc
