// SPDX-License-Identifier: Apache-2.0
// What a slip in the buffer plan, or in a code generator that the plan relies on, would leave.
#include "tests/fuzz/plan_mutations.h"

#include <algorithm>

namespace einc {
namespace {

NodeId holder(const BufferPlan& plan, NodeId id) {
  while (plan.buffers[id.index].place == BufferPlace::in_target) id = plan.buffers[id.index].target;
  return id;
}

// None of scratch memory, which no node has.
NodeId node_of(const GraphKernel& k, uint16_t buffer) { return buffer < k.buffers.size() ? k.buffers[buffer] : NodeId{}; }

bool in_arena(const BufferPlan::Buffer& b) { return b.place == BufferPlace::arena || b.place == BufferPlace::shared; }

// The values that a stage would need if it had only that store.
std::vector<bool> needed_for(const Kernel& kernel, const Stage& stage, const Store& store) {
  Stage only = stage;
  only.stores = {store};
  return needed_by(kernel, only);
}

}  // namespace

// The place of a value that is still read goes to another one.
bool place_given_away(FormedGraph& formed, Chooser& choose) {
  std::vector<BufferPlan::Buffer>& places = formed.plan.buffers;
  const std::vector<GraphKernel>& kernels = formed.list.kernels;
  const auto touches = [&](size_t k, NodeId id) {
    return std::find(kernels[k].buffers.begin(), kernels[k].buffers.end(), id) != kernels[k].buffers.end();
  };
  const auto in_arena = [&](NodeId id) { return places[id.index].place == BufferPlace::arena; };
  for (size_t made = 0; made < kernels.size(); ++made)
    for (NodeId kept : kernels[made].group.stored)
      for (size_t between = made + 1; in_arena(kept) && between + 1 < kernels.size(); ++between)
        for (NodeId taker : kernels[between].group.stored) {
          if (!in_arena(taker) || places[taker.index].bytes > places[kept.index].bytes || touches(between, kept)) continue;
          bool read = false;
          for (size_t k = between + 1; k < kernels.size(); ++k) read |= touches(k, kept);
          if (!read || places[taker.index].offset == places[kept.index].offset || !choose.here()) continue;
          places[taker.index].offset = places[kept.index].offset;
          return true;
        }
  return false;
}

// The kernel reads the operand, or its neighbours, after it has written there.
bool result_over_operand(FormedGraph& formed, Chooser& choose) {
  std::vector<BufferPlan::Buffer>& places = formed.plan.buffers;
  for (const GraphKernel& k : formed.list.kernels)
    for (const Stage& stage : k.kernel->stages)
      for (const Store& store : stage.stores)
        for (const Scalar& read : k.kernel->values) {
          if (read.kind != ScalarKind::load || read.index == store.index) continue;
          const NodeId operand = node_of(k, read.slot), result = node_of(k, store.buffer);
          if (!operand.valid() || !result.valid() || operand == result) continue;
          BufferPlan::Buffer &from = places[operand.index], &to = places[result.index];
          if (!in_arena(from) || !in_arena(to) || to.bytes > from.bytes || to.offset == from.offset || !choose.here()) continue;
          to.offset = from.offset;
          return true;
        }
  return false;
}

// Where a result lies over an operand that only a later store of its stage needs, that store gets a stage of its own: it loads what
// has just been overwritten.
bool store_before_loads(FormedGraph& formed, Chooser& choose) {
  const BufferPlan& plan = formed.plan;
  const auto place = [&](NodeId id) { return plan.buffers[holder(plan, id).index].offset; };
  for (GraphKernel& k : formed.list.kernels) {
    if (k.kernel->contraction || k.kernel->attention) continue;
    for (size_t s = 0; s < k.kernel->stages.size(); ++s) {
      const Stage& stage = k.kernel->stages[s];
      for (size_t later = 1; later < stage.stores.size() && stage.reductions.empty() && !stage.ordered; ++later) {
        const std::vector<bool> needed = needed_for(*k.kernel, stage, stage.stores[later]);
        bool overwritten = false;
        for (size_t v = 0; v < needed.size(); ++v) {
          const Scalar& read = k.kernel->values[v];
          const NodeId operand = node_of(k, read.slot);
          if (!needed[v] || read.kind != ScalarKind::load || !operand.valid()) continue;
          for (size_t early = 0; early < later; ++early) {
            const NodeId result = node_of(k, stage.stores[early].buffer);
            overwritten |= result.valid() && place(result) == place(operand);
          }
        }
        if (!overwritten || !choose.here()) continue;
        const auto changed = std::make_shared<Kernel>(*k.kernel);
        Stage second = stage;
        second.stores = {stage.stores[later]};
        changed->stages[s].stores.erase(changed->stages[s].stores.begin() + static_cast<int64_t>(later));
        changed->stages.insert(changed->stages.begin() + static_cast<int64_t>(s) + 1, std::move(second));
        k.kernel = changed;
        return true;
      }
    }
  }
  return false;
}

// What scatters and the like add to is then not what was there before.
bool sum_begun_elsewhere(FormedGraph& formed, Chooser& choose) {
  for (const Continued& c : formed.list.continued) {
    BufferPlan::Buffer& base = formed.plan.buffers[c.base.index];
    const NodeId whole = holder(formed.plan, c.whole);
    if (base.place != BufferPlace::in_target || formed.plan.buffers[whole.index].offset == 0 || !choose.here()) continue;
    base.place = BufferPlace::arena;
    base.offset = 0;
    return true;
  }
  return false;
}

}  // namespace einc
