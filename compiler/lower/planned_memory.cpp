// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/planned_memory.h"

#include "compiler/lower/assemble_program.h"
#include "compiler/lower/divide_reductions.h"

namespace einc {
namespace {

int64_t& row_of(PlannedMemory& memory, const Node& source) {
  if (source.op == Op::param) return memory.parameters;
  if (source.op == Op::input) return memory.inputs;
  return source.as<StateAttr>().role == StateRole::user ? memory.state : memory.optimizer_state;
}

}  // namespace

PlannedMemory planned_memory(const BoundGraph& graph, const KernelList& list, const BufferPlan& plan, int64_t besides, int64_t per_thread) {
  PlannedMemory memory;
  for (uint32_t i = 0; i < plan.buffers.size(); ++i) {
    const BufferPlan::Buffer& b = plan.buffers[i];
    if (b.place == BufferPlace::source) row_of(memory, graph.graph.nodes[i]) += b.bytes;
    if (b.place == BufferPlace::gradient) memory.gradients += b.bytes;
    if (b.place == BufferPlace::bound) memory.workspace += b.bytes;
  }
  memory.saved = plan.fullest.saved;
  memory.workspace += plan.fullest.others + parts_bytes(list) + besides;
  for (const BufferPlan::Snapshot& snapshot : plan.snapshots) memory.workspace += plan.buffers[snapshot.source.index].bytes;
  memory.per_thread = per_thread;
  memory.fragmentation = plan.total_bytes + besides - memory.total();
  const uint32_t at = plan.fullest.launch;
  memory.launch = at < list.kernels.size() ? launch_label(graph[list.kernels[at].group.members.back()]) : "the end";
  return memory;
}

}  // namespace einc
