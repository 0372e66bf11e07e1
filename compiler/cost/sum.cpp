// SPDX-License-Identifier: Apache-2.0
#include "compiler/cost/sum.h"

#include <algorithm>
#include <map>

namespace einc {

Poly fold_iterations(const Loop& loop, const std::vector<Poly>& iterations) {
  std::vector<std::pair<Poly, int64_t>> groups;  // in order of appearance
  std::unordered_map<Poly, size_t> place;
  for (const Poly& p : iterations) {
    const auto [it, fresh] = place.emplace(p, groups.size());
    if (fresh) groups.emplace_back(p, 0);
    ++groups[it->second].second;
  }
  // Iterations that add nothing have no entry: they are a group of zeros.
  const int64_t silent = loop.count - static_cast<int64_t>(iterations.size());
  size_t most = 0;
  for (size_t g = 1; g < groups.size(); ++g)
    if (groups[g].second > groups[most].second) most = g;
  Poly sum;
  const bool alike = groups.size() == 1 && silent == 0;
  const bool fold = (alike || groups[most].second > 1) && groups[most].second >= silent;
  for (size_t g = 0; g < groups.size(); ++g)
    if (!fold || g != most) sum += groups[g].first * Poly(groups[g].second);
  if (fold) sum += (loop.trip_count - Poly(loop.count - groups[most].second)) * groups[most].first;
  return sum;
}

LoopSum::LoopSum(const Graph& graph, int channels)
    : graph_(graph), channels_(channels), terms_(graph.loop_contexts.size() * static_cast<size_t>(channels)) {}

uint32_t LoopSum::intern(const Poly& amount) {
  const auto [it, fresh] = index_.emplace(amount, static_cast<uint32_t>(distinct_.size()));
  if (fresh) distinct_.push_back(amount);
  return it->second;
}

void LoopSum::add(int channel, uint32_t loop_context, const Poly& amount) {
  if (amount.is_zero()) return;
  ++terms_[loop_context * static_cast<size_t>(channels_) + static_cast<size_t>(channel)][intern(amount)];
}

std::vector<Poly> LoopSum::totals() const {
  const size_t contexts = graph_.loop_contexts.size(), channels = static_cast<size_t>(channels_);
  std::vector<Poly> total(contexts * channels);
  // Loops right inside each context; a context comes after its parent, so going backwards children are done first.
  std::vector<std::map<uint32_t, std::vector<uint32_t>>> children(contexts);
  for (uint32_t c = 1; c < contexts; ++c) children[graph_.loop_contexts[c].parent][graph_.loop_contexts[c].loop].push_back(c);
  for (size_t c = contexts; c-- > 0;)
    for (size_t channel = 0; channel < channels; ++channel) {
      const size_t here = c * channels + channel;
      Poly sum;
      for (const auto& [poly, times] : terms_[here]) sum += distinct_[poly] * Poly(times);
      for (const auto& [loop, iterations] : children[c]) {
        std::map<int64_t, Poly> amounts;
        for (uint32_t child : iterations) {
          const Poly& amount = total[child * channels + channel];
          if (!amount.is_zero()) amounts[graph_.loop_contexts[child].iteration] += amount;
        }
        std::vector<Poly> list;
        for (auto& [iteration, amount] : amounts) list.push_back(std::move(amount));
        if (!list.empty()) sum += fold_iterations(graph_.loops[loop], list);
      }
      total[here] = std::move(sum);
    }
  return {total.begin(), total.begin() + channels_};
}

}  // namespace einc
