// SPDX-License-Identifier: Apache-2.0
// Which bytes of each launch come from memory and which from the last cache: what a kernel reads is in the cache if no more than the
// cache holds was touched since the launch before that touched it.
#pragma once
#include <span>
#include <vector>

#include "compiler/lower/bound_graph.h"
#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_work.h"

namespace einc {

struct LaunchTraffic {
  KernelWork work;
  int64_t from_memory = 0, to_memory = 0;  // of the bytes that `work` counts
  int64_t beyond_core = 0;                 // of them, in and out of the caches that are a core's own (report/schedule)
};

// Per kernel of the list, as the step runs again and again. The cache keeps whole buffers, the one used last the longest, and what is
// written goes to memory when it leaves the cache, which is never where a later value takes its place before that. `cache_bytes` 0: all
// bytes are memory's. Of alternatives that run `instead` of their parts, work and bytes stand at their place, and the other parts have
// none.
std::vector<LaunchTraffic> launch_traffic(const KernelList& list, const BufferPlan& plan, int64_t cache_bytes,
                                          std::span<const FusedProduct> instead = {});

}  // namespace einc
