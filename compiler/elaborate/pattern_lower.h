// SPDX-License-Identifier: Apache-2.0
// A solved pattern as graph nodes. Opening an operand turns it into a tensor of distinct labels: groups are split, units
// dropped, windows opened, repeated labels reduced to their diagonal. Closing brings labels into the output's order,
// repeats along new ones and merges composed axes. In between, contract_terms sums and multiplies. All but that are views.
#pragma once
#include <string>
#include <vector>

#include "compiler/elaborate/pattern_solver.h"

namespace einc {

struct LabelledTensor {
  NodeId node;
  std::vector<int> labels;  // of its axes, all different
  bool has(int label) const;
  std::vector<int> labels_in(const std::vector<int>& kept) const;
  AxisList axes_without(const std::vector<int>& kept) const;  // positions of the other labels
};

LabelledTensor open_operand(Builder& build, const SolvedPattern& pattern, size_t operand, NodeId x);
// Every label of `x` is one of the output's. Nodes from `first_own` on are ours: their axes are named in place.
NodeId close_output(Builder& build, const SolvedPattern& pattern, const LabelledTensor& x, uint32_t first_own);

// The product of all terms, summed over the labels that are not in `kept`. Three or more terms go in the cheapest order
// for the context's values; `texts` are the terms as written, for the report. nullopt after a report.
std::optional<LabelledTensor> contract_terms(Context& context, const SolvedPattern& pattern, std::vector<LabelledTensor> terms,
                                             const std::vector<int>& kept, const std::vector<std::string>& texts, Span where);

}  // namespace einc
