// SPDX-License-Identifier: Apache-2.0
#include "compiler/fuse/pullback_halves.h"

#include <algorithm>

#include "runtime/base/pullback_names.h"

namespace einc {

std::vector<bool> find_pulled(const Graph& graph) {
  std::vector<bool> pulled(graph.size(), false);
  bool any = false;
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    pulled[i] = node.op == Op::input && node.as<InputAttr>().name.str().starts_with(kCotangent);
    for (NodeId x : node.operands) pulled[i] = pulled[i] || pulled[x.index];
    any = any || pulled[i];
  }
  if (!any) pulled.clear();
  return pulled;
}

std::optional<size_t> first_half(const BoundGraph& graph, const KernelList& list, const std::vector<NodeId>& roots) {
  if (graph.pulled.empty() || !graph.graph.updates.empty()) return std::nullopt;
  size_t count = 0;
  for (NodeId root : roots) {
    if (graph.is_pulled(root) || is_source(graph[root].op)) continue;
    const auto writes = [&](const GraphKernel& k) {
      for (size_t b = 0; b < k.buffers.size(); ++b)
        if (k.buffers[b] == root && k.kernel->buffers[b].access != BufferAccess::read) return true;
      return false;
    };
    const auto last = std::find_if(list.kernels.rbegin(), list.kernels.rend(), writes);
    if (last == list.kernels.rend()) return std::nullopt;
    count = std::max(count, static_cast<size_t>(list.kernels.rend() - last));
  }
  const auto reads_none = [&](const GraphKernel& k) {
    return std::ranges::none_of(k.group.members, [&](NodeId id) { return graph.is_pulled(id); });
  };
  if (!std::all_of(list.kernels.begin(), list.kernels.begin() + static_cast<ptrdiff_t>(count), reads_none)) return std::nullopt;
  return count;
}

}  // namespace einc
