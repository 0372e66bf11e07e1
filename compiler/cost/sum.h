// SPDX-License-Identifier: Apache-2.0
// Sums of a formula over many nodes, written the way the program is: the iterations of an unrolled loop that cost the same
// fold back to the loop's dim, `layers*(...)`, or `(layers - 1)*(...) + ...` where some differ. At the dims in use the
// formula has exactly the value of the plain sum.
#pragma once
#include <unordered_map>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// Sum over one loop's iterations (those that add nothing may be left out): the commonest amount times the trip count,
// corrected by those that differ. At least one amount.
Poly fold_iterations(const Loop& loop, const std::vector<Poly>& iterations);

class LoopSum {
 public:
  // `channels` independent sums over the same loops.
  LoopSum(const Graph& graph, int channels);
  void add(int channel, uint32_t loop_context, const Poly& amount);
  // All sums at once.
  std::vector<Poly> totals() const;

 private:
  using Terms = std::unordered_map<uint32_t, int64_t>;  // distinct formula -> how often
  uint32_t intern(const Poly& amount);
  const Graph& graph_;
  int channels_;
  std::unordered_map<Poly, uint32_t> index_;
  std::vector<Poly> distinct_;
  std::vector<Terms> terms_;  // [context * channels + channel]
};

}  // namespace einc
