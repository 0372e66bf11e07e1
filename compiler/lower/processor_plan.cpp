// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/processor_plan.h"

#include <algorithm>
#include <map>

#include "compiler/lower/keep_rows.h"
#include "compiler/lower/kernel_cycles.h"
#include "compiler/lower/scan_schedule.h"
#include "runtime/base/check.h"
#include "runtime/base/round_up.h"

namespace einc {
namespace {

struct Place {
  bool own = false;  // the program's, no input, param or state
  int64_t offset = 0;
};

Place place_of(const BoundGraph& graph, const BufferPlan& places, const GraphKernel& k, size_t buffer) {
  const NodeId id = k.buffers[buffer];
  if (!id.valid()) {
    const auto part = std::ranges::find_if(k.parts, [&](const Parts& p) { return p.buffer == buffer; });
    return {true, places.parts_offset + part->offset};
  }
  const NodeId holder = places.holder(id);
  const BufferPlan::Buffer& b = places.buffers[holder.index];
  const Op op = graph[holder].op;
  return {op != Op::input && op != Op::param && op != Op::state, b.offset};
}

std::vector<bool> unshared_buffers(const BoundGraph& graph, const BufferPlan& places, const GraphKernel& k) {
  std::vector<Place> at;
  for (size_t i = 0; i < k.buffers.size(); ++i) at.push_back(place_of(graph, places, k, i));
  std::vector<bool> unshared;
  for (const Place& place : at) unshared.push_back(place.own && std::ranges::count(at, place.offset, &Place::offset) == 1);
  unshared.resize(k.kernel->buffers.size(), false);
  return unshared;
}

}  // namespace

ProcessorPlan plan_on_processor(const Kernel& kernel, const Processor& processor, const std::vector<bool>& unshared) {
  ProcessorPlan p;
  if (kernel.attention) {
    p.attention = tile_attention(kernel, processor);
    p.scratch_bytes = p.attention->scratch_bytes();
  } else {
    p.plan = plan_loops(kernel, processor, unshared);
    p.tiles = tile_contraction(kernel, processor, unshared);
    p.scratch_bytes = p.tiles ? p.tiles->scratch_bytes() : row_bytes(kernel);
    if (kernel.contraction && !kernel.contraction->padded.empty())  // work is counted without it (kernel_work)
      EINC_CHECK(p.tiles && p.tiles->kernel.contraction->padded == kernel.contraction->padded, "padding that no tile leaves out");
  }
  p.alone = cycles_of_one_core(kernel, p, processor) < kSmallLaunch;
  return p;
}

void plan_loops_of(const BoundGraph& graph, const BufferPlan& places, const Processor& processor, KernelList& list) {
  std::map<std::pair<const Kernel*, std::vector<bool>>, std::shared_ptr<const ProcessorPlan>> known;
  for (GraphKernel& k : list.kernels) {
    if (k.kernel->scan || k.kernel->collective) continue;
    std::vector<bool> unshared = unshared_buffers(graph, places, k);
    std::shared_ptr<const ProcessorPlan>& plan = known[{k.kernel.get(), unshared}];
    if (!plan) plan = std::make_shared<ProcessorPlan>(plan_on_processor(*k.kernel, processor, unshared));
    k.loops = plan;
  }
}

int64_t panel_bytes(const KernelList& list) {
  int64_t most = 0;
  for (const GraphKernel& k : list.kernels)
    if (!k.kernel->collective) most = std::max(most, k.kernel->scan ? panel_bytes(k.kernel->scan->list) : k.loops->scratch_bytes);
  return round_up(most, kCacheLine);
}

}  // namespace einc
