// SPDX-License-Identifier: Apache-2.0
#include "compiler/plan/remembered_plans.h"

#include <algorithm>
#include <unordered_map>

#include "compiler/ir/attr_hash.h"

namespace einc {
namespace {

// But for the names of what is given to it, and where it stands in the source.
bool plan_alike(const Node& a, const Node& b) {
  if (a.op != b.op || !std::ranges::equal(a.operands, b.operands) || a.type.dtype != b.type.dtype) return false;
  if (a.origin.phase != b.origin.phase || a.origin.policy != b.origin.policy) return false;
  if (!std::ranges::equal(a.type.axes, b.type.axes, {}, &Axis::size, &Axis::size)) return false;
  return is_source(a.op) || a.attr == b.attr;
}

bool plan_alike(const Graph& a, const Graph& b) {
  return std::ranges::equal(a.nodes, b.nodes, [](const Node& x, const Node& y) { return plan_alike(x, y); }) &&
         std::ranges::equal(a.outputs, b.outputs, {}, &Output::node, &Output::node) && a.updates.empty() && b.updates.empty();
}

struct Remembered {
  std::shared_ptr<const Graph> graph;  // that the plan refers to
  Bindings dims;
  RunMode mode;
  PlannedStep step;
};

}  // namespace

PlanStep remembered(const PlanStep& plan, const std::vector<Name>& counts) {
  auto known = std::make_shared<std::unordered_map<size_t, std::vector<Remembered>>>();
  return [=](const Graph& graph, const Bindings& given, RunMode mode) {
    Bindings dims = given;
    for (const Name count : counts) dims.erase(count);
    size_t hash = graph.nodes.size();
    for (const Node& node : graph.nodes) {
      hash = mix(hash, static_cast<size_t>(node.op));
      for (const NodeId operand : node.operands) hash = mix(hash, operand.index);
    }
    std::vector<Remembered>& list = (*known)[hash];
    for (const Remembered& r : list)
      if (r.mode == mode && r.dims == dims && plan_alike(*r.graph, graph)) return r.step;
    auto kept = std::make_shared<const Graph>(graph);
    return list.emplace_back(Remembered{kept, dims, mode, plan(*kept, given, mode)}).step;
  };
}

}  // namespace einc
