// SPDX-License-Identifier: Apache-2.0
// The cheapest tree over a few terms, by dynamic programming over all their subsets (3^n / 2 splits for n terms).
#pragma once
#include <vector>

#include "compiler/contraction/label_set.h"
#include "compiler/contraction/order.h"

namespace einc {

struct TreeCost {
  double flops = 0;
  double elements = 0;  // of all intermediates: decides between trees of equal FLOPs
  friend bool operator<(const TreeCost& a, const TreeCost& b) { return a.flops != b.flops ? a.flops < b.flops : a.elements < b.elements; }
  friend TreeCost operator+(const TreeCost& a, const TreeCost& b) { return {a.flops + b.flops, a.elements + b.elements}; }
};

struct ExactOrder {
  std::vector<ContractionStep> steps;
  TreeCost cost;
};

// `needed`: the labels that stay because something outside these terms has them.
ExactOrder exact_order(const std::vector<LabelSet>& terms, const LabelSet& needed, const SizeProducts& sizes);

}  // namespace einc
