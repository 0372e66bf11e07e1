// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/chosen_order.h"

#include <algorithm>
#include <tuple>

namespace einc {
namespace {

std::tuple<Name, uint32_t, uint32_t> place_of(const SourceLocation& at) { return {at.file, at.line, at.column}; }

// A path and all its prefixes, the empty one too.
void add_prefixes(std::unordered_set<std::string>& paths, const std::string& path) {
  paths.insert("");
  for (size_t dot = path.find('.'); dot != std::string::npos; dot = path.find('.', dot + 1)) paths.insert(path.substr(0, dot));
  paths.insert(path);
}

}  // namespace

ChosenOrders::ChosenOrders(const Graph& graph, const std::vector<bool>& constant, const std::vector<FlopCost>& costs,
                           const std::vector<NodeId>& saved)
    : nodes_(graph.size(), false) {
  if (graph.plans.empty()) return;
  std::vector<std::tuple<Name, uint32_t, uint32_t>> places;
  for (const ContractionPlan& plan : graph.plans) places.push_back(place_of(plan.location));
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Origin& origin = graph.nodes[i].origin;
    if (kind_of(graph.nodes[i].op) == OpKind::source) continue;
    if (std::find(places.begin(), places.end(), place_of(origin.location)) == places.end()) continue;
    nodes_[i] = true;
    if (constant[i] || costs[i].flops.is_zero()) continue;
    flops_[static_cast<size_t>(origin.phase)][static_cast<size_t>(costs[i].kind)] = true;
    if (origin.phase == Phase::forward) add_prefixes(forward_, origin.module.str());
    add_prefixes(step_, origin.module.str());
  }
  for (NodeId id : saved)
    if (nodes_[id.index]) add_prefixes(saved_, graph[id].origin.module.str());
}

bool ChosenOrders::phase(Phase phase) const {
  const auto& kinds = flops_[static_cast<size_t>(phase)];
  return std::any_of(kinds.begin(), kinds.end(), [](bool kind) { return kind; });
}

}  // namespace einc
