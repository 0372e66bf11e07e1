// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/known_gradients.h"

#include <algorithm>

namespace einc {
namespace {

bool has_scan(const Graph& graph, NodeId y) {
  std::vector<bool> read(y.index + 1, false);
  read[y.index] = true;
  for (uint32_t i = y.index + 1; i-- > 0;) {
    if (!read[i]) continue;
    if (graph.nodes[i].op == Op::scan) return true;
    for (NodeId x : graph.nodes[i].operands) read[x.index] = true;
  }
  return false;
}

}  // namespace

std::vector<NodeId> KnownGradients::of(Builder& build, NodeId y, std::span<const NodeId> wrt, CustomGradients& custom, Made made) {
  const auto known = std::ranges::find_if(
      list_, [&](const Known& k) { return k.y == y && std::ranges::all_of(wrt, [&](NodeId x) { return k.by.contains(x.index); }); });
  std::vector<NodeId> gradients;
  if (known != list_.end()) {
    for (NodeId x : wrt) gradients.push_back(known->by.at(x.index));
    return gradients;
  }
  std::vector<NodeId> all(wrt.begin(), wrt.end());
  if (made == Made::sources_too && has_scan(build.graph(), y))
    for (uint32_t i = 0; i < y.index; ++i) {
      const Node& node = build.graph().nodes[i];
      const bool source = node.op == Op::input || node.op == Op::param;
      if (source && is_floating(node.type.dtype) && std::ranges::find(wrt, NodeId{i}) == wrt.end()) all.push_back(NodeId{i});
    }
  gradients = differentiate(build, y, all, {{}, &custom, nullptr});
  Known fresh{y, {}};
  for (size_t i = 0; i < all.size(); ++i) fresh.by.emplace(all[i].index, gradients[i]);
  list_.push_back(std::move(fresh));
  gradients.resize(wrt.size());
  return gradients;
}

}  // namespace einc
