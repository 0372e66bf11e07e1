// SPDX-License-Identifier: Apache-2.0
// The pass `loops`: how each kernel runs on a processor, by the plans of loops, tiles or attention. Code is emitted as they say.
#pragma once
#include <optional>

#include "compiler/lower/buffer_plan.h"
#include "compiler/lower/kernel_list.h"
#include "compiler/lower/loop_plan.h"
#include "compiler/lower/tile_attention.h"
#include "compiler/lower/tile_contraction.h"

namespace einc {

struct ProcessorPlan {
  LoopPlan plan;
  std::optional<TiledContraction> tiles;  // instead of the plan's loops
  std::optional<TiledAttention> attention;
  int64_t scratch_bytes = 0;  // of each thread: panels, kept rows, scores
  bool alone = false;         // one thread does all of it: too little to start others for

  int64_t domain() const { return attention ? attention->domain() : tiles ? tiles->domain() : plan.domain; }
};

// `unshared`: by buffer, whether no other one of the launch lies there, in the program's own memory.
ProcessorPlan plan_on_processor(const Kernel& kernel, const Processor& processor, const std::vector<bool>& unshared);

// A plan for each kernel of the list but scans; equal kernels whose buffers lie alike share theirs.
void plan_loops_of(const BoundGraph& graph, const BufferPlan& places, const Processor& processor, KernelList& list);

// What each thread needs for the kernels of a list that is planned, in whole cache lines.
int64_t panel_bytes(const KernelList& list);

}  // namespace einc
