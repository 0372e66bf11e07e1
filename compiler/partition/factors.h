// SPDX-License-Identifier: Apache-2.0
// The table of rules: how the axes of an op's operands and result belong together. Axes that share a label may be split over one mesh
// axis, each device doing its part alone. (The factors of Shardy's sharding rules, OpenXLA.)
#pragma once
#include <string>
#include <utility>
#include <vector>

#include "compiler/ir/graph.h"

namespace einc {

// keep: an axis of the result, too. combine: summed or the like; the result is then partial. rows: the indexed axis of a table, whose parts
// take what falls on them. whole: each device needs all of it.
enum class LabelKind : uint8_t { keep, combine, rows, whole };

struct FactorLabel {
  LabelKind kind = LabelKind::whole;
  ReduceFn fn = ReduceFn::sum;  // of combine and rows
  // A mesh axis splits it only where it splits no other label of the operands.
  bool yields = false;
};

// What becomes of an operand that is a sum still to be taken.
// each: the result is such a sum, where no other operand is split there. together: where all operands are.
enum class Linearity : uint8_t { none, each, together };

struct Factors {
  std::vector<FactorLabel> labels;
  std::vector<std::vector<int>> operands;  // of each operand's axes: labels
  std::vector<int> result;                 // -1: belongs to no operand's
  std::vector<Linearity> linear;           // by operand
  // Of a scan (scan_factors.h): of each result's axes, labels; and sizes inside that what splits a label has to divide as well.
  std::vector<std::vector<int>> results;
  std::vector<std::pair<int, Poly>> sizes;
};

// Of a final graph's node.
Factors factors_of(const Graph& graph, NodeId id);

}  // namespace einc
