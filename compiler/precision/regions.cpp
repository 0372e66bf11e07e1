// SPDX-License-Identifier: Apache-2.0
#include "compiler/precision/regions.h"

namespace einc {
namespace {

// For each node whether all its users so far are inside; filled from the users backwards.
struct Users {
  std::vector<bool> any, outside;
  explicit Users(size_t count) : any(count, false), outside(count, false) {}
  void add(NodeId id, bool inside) {
    any[id.index] = true;
    if (!inside) outside[id.index] = true;
  }
  bool all_inside(uint32_t i) const { return any[i] && !outside[i]; }
};

// Ops through which a gradient's terms pass unchanged or scaled.
bool passes_terms(const Node& node) {
  if (kind_of(node.op) == OpKind::view) return true;
  if (node.op != Op::map) return false;
  const MapFn fn = node.as<MapAttr>().fn;
  return fn == MapFn::add || fn == MapFn::sub || fn == MapFn::neg || fn == MapFn::mul;
}

}  // namespace

std::vector<bool> loss_region(const Graph& graph) {
  std::vector<bool> region(graph.size(), false);
  if (!graph.loss.valid()) return region;
  Users users(graph.size());
  for (uint32_t i = graph.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (node.origin.phase != Phase::forward) continue;
    const bool source = kind_of(node.op) == OpKind::source;
    region[i] = graph.loss.index == i || (users.all_inside(i) && node.op != Op::contract && !source);
    for (NodeId x : node.operands) users.add(x, region[i] && node.op != Op::contract);
  }
  return region;
}

std::vector<bool> weight_region(const Graph& graph, const std::vector<bool>& known) {
  std::vector<bool> region = known;
  region.resize(graph.size(), false);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    const Node& node = graph.nodes[i];
    const bool passes = node.op == Op::cast || kind_of(node.op) == OpKind::view;
    if (node.op == Op::param || (passes && region[node.operands[0].index])) region[i] = true;
  }
  return region;
}

std::vector<DType> gradient_region(const Graph& graph) {
  std::vector<DType> region(graph.size(), DType::real);
  auto master = [](const Node& param) { return param.type.dtype == DType::real ? DType::f32 : param.type.dtype; };
  for (const Update& gradient : graph.gradients) region[gradient.value.index] = master(graph[gradient.target]);
  for (const Update& update : graph.updates)  // sums of gradients
    if (graph[update.target].op == Op::state && graph[update.target].as<StateAttr>().role == StateRole::moment &&
        graph[update.value].origin.phase == Phase::backward)
      region[update.value.index] = master(graph[update.target]);
  Users users(graph.size());
  std::vector<DType> wanted(graph.size(), DType::real);
  for (uint32_t i = graph.size(); i-- > 0;) {
    const Node& node = graph.nodes[i];
    if (region[i] == DType::real && node.origin.phase == Phase::backward && users.all_inside(i)) region[i] = wanted[i];
    const bool inside = region[i] != DType::real && node.origin.phase == Phase::backward && passes_terms(node);
    for (NodeId x : node.operands) {
      users.add(x, inside);
      wanted[x.index] = region[i];
    }
  }
  return region;
}

}  // namespace einc
