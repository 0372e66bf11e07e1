// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/kernel_builder.h"

#include <algorithm>

#include "compiler/fuse/evaluate.h"
#include "compiler/fuse/index_split.h"
#include "compiler/fuse/locate.h"
#include "compiler/fuse/ordered_kernels.h"
#include "compiler/fuse/stages.h"

namespace einc {
namespace {

// The largest member; of equals the last, so that others are operands of it.
NodeId space_node(const BoundGraph& graph, const Group& group) {
  NodeId best = group.members.front();
  for (NodeId id : group.members)
    if (graph.count(id) >= graph.count(best)) best = id;
  return best;
}

BuiltKernel attempt(const BoundGraph& graph, const Group& group, const std::vector<bool>& member, const std::vector<bool>& in_memory,
                    LoopSpace& space) {
  BuiltKernel out;
  KernelEvaluator evaluator(graph, member, in_memory, space, out);
  if (const NodeId first = group.members.front(), last = group.members.back(); is_ordered(graph, first) || is_ordered(graph, last)) {
    const bool continues = graph[first].op == Op::scatter_add && group.members.size() == 2;
    if (group.members.size() > 1 && !continues) throw Refused{"an ordered loop is a kernel of its own"};
    build_ordered_kernel(graph, group, space, evaluator, out);
    return out;
  }
  const NodeId node = space_node(graph, group);
  Indices at;
  for (size_t i = 0; i < graph.shape(node).size(); ++i)
    at.push_back(space.unit(space.add(out.kernel, graph.shape(node)[i], graph[node].type.axis(static_cast<int>(i)).name)).index);
  const auto located = locate_members(graph, group, member, node, at, out.kernel, evaluator);
  std::vector<Store> stores;
  for (NodeId id : group.stored) {
    const auto found = located.find(id.index);
    if (found == located.end()) throw Refused{"a stored value has no place in the loops"};
    const Subscript place = evaluator.address(id, found->second);
    if (!runs_once_over(graph.padding_of(id) == 0 ? place : evaluator.number(id, found->second), graph.count(id), out.kernel.axes))
      throw Refused{"a stored value is met twice, or not everywhere, in the loops"};
    const ValueId value = evaluator.value_of(id, found->second);
    stores.push_back({evaluator.buffer(id, BufferAccess::write), place, value, StoreMode::set});
  }
  // A node by itself must form some kernel; joining two is a choice, which should not cost a sum at every element.
  form_stages(evaluator, std::move(stores), group.members.size() > 1 ? Repeats::refused : Repeats::allowed, out);
  return out;
}

}  // namespace

BuildResult build_kernel(const BoundGraph& graph, const Group& group, const std::vector<bool>& in_memory) {
  std::vector<bool> member(graph.graph.size(), false);
  for (NodeId id : group.members) member[id.index] = true;
  auto [built, refusal] = build_in([&](LoopSpace& space) { return attempt(graph, group, member, in_memory, space); });
  return {std::move(built), std::move(refusal)};
}

}  // namespace einc
