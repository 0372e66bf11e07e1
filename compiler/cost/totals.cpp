// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/totals.h"

#include "compiler/cost/sum.h"

namespace einc {

Poly FlopTotals::total(Phase phase) const {
  Poly sum;
  for (const Poly& p : by_class[static_cast<size_t>(phase)]) sum += p;
  return sum;
}

FlopTotals count_flops(const Graph& graph, const std::vector<bool>& constant) {
  return count_flops(graph, constant, flop_costs(graph, Sizes(graph)));
}

FlopTotals count_flops(const Graph& graph, const std::vector<bool>& constant, const std::vector<FlopCost>& costs) {
  constexpr int kColumns = kFlopClasses + 1;  // the last: transcendental
  LoopSum sum(graph, 3 * kColumns);
  for (uint32_t i = 0; i < graph.size(); ++i) {
    if (constant[i]) continue;
    const Origin& origin = graph.nodes[i].origin;
    const FlopCost& cost = costs[i];
    const int phase = static_cast<int>(origin.phase) * kColumns;
    for (size_t k = 0; k < cost.by_class.size(); ++k) sum.add(phase + static_cast<int>(k), origin.loop_context, cost.by_class[k]);
    if (!cost.by_class.empty()) continue;
    sum.add(phase + static_cast<int>(cost.kind), origin.loop_context, cost.flops);
    if (cost.transcendental) sum.add(phase + kFlopClasses, origin.loop_context, cost.flops);
  }
  const std::vector<Poly> flat = sum.totals();
  FlopTotals totals;
  for (size_t phase = 0; phase < 3; ++phase) {
    for (size_t k = 0; k < kFlopClasses; ++k) totals.by_class[phase][k] = flat[phase * kColumns + k];
    totals.transcendental[phase] = flat[phase * kColumns + kFlopClasses];
  }
  return totals;
}

}  // namespace einc
