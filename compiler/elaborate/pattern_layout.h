// SPDX-License-Identifier: Apache-2.0
// What a pattern says about its operands before any size is solved: its labels, the leaves that every axis splits into,
// and the equations "product of the leaves = size of the axis" that the solver works on.
#pragma once
#include <optional>
#include <string>
#include <unordered_map>
#include <vector>

#include "compiler/elaborate/pattern_solver.h"

namespace einc {

struct LayoutLabel {
  Name name;
  Span where;
  bool written = false;  // its name stands in the pattern
  bool ellipsis = false;
  std::optional<Poly> size;
  Span origin;              // what gave the size,
  std::string origin_text;  // in words
};

// The product of the leaves is the axis' size.
struct AxisEquation {
  size_t operand, axis;
  size_t first_leaf, leaf_count;
  Span where;
  std::string text;
  bool done = false;
};

struct PatternLayout {
  std::vector<LayoutLabel> labels;
  std::unordered_map<Name, int> by_name;
  std::vector<OperandLayout> operands;
  std::vector<OutputAxis> output;
  std::vector<AxisEquation> equations;
  std::vector<Name> stride_names;  // given sizes that are strides of windows
};

// Ranks are checked, sizes not. nullopt after a report.
std::optional<PatternLayout> read_layout(Context& context, const Pattern& pattern, const std::vector<PatternOperand>& operands,
                                         const std::vector<GivenSize>& given);

}  // namespace einc
