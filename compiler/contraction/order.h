// SPDX-License-Identifier: Apache-2.0
// In which order to contract the operands of an einsum, two at a time. A step costs the product of its distinct labels,
// twice that when it sums over one (the cost report's rule), so the cheapest tree is the one with the fewest FLOPs; equal
// trees are told apart by the elements of their intermediates, then by the operands' order. Up to kExactOperands the
// search is exhaustive (dynamic programming over subsets, outer products included); above, greedy and then improved by
// exact search inside small subtrees. Labels found in one operand only, and not in the output, are to be summed beforehand.
#pragma once
#include <cstdint>
#include <span>
#include <vector>

namespace einc {

constexpr int kExactOperands = 14;
constexpr int kMaxContractionOperands = 256;

struct ContractionProblem {
  std::vector<std::vector<int>> operands;  // the distinct labels of each
  std::vector<int> output;
  std::vector<double> sizes;  // by label
};

enum class OrderMethod : uint8_t { exact, greedy };

// Terms count on: 0 .. n-1 are the operands, n + k the result of step k; the last step gives the output.
struct ContractionStep {
  int left = 0, right = 0;
  friend bool operator==(const ContractionStep&, const ContractionStep&) = default;
};

struct ContractionOrder {
  std::vector<ContractionStep> steps;  // one less than there are operands
  double flops = 0;                    // of the steps alone
  OrderMethod method = OrderMethod::exact;
};

ContractionOrder choose_order(const ContractionProblem& problem);

}  // namespace einc
