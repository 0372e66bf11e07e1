// SPDX-License-Identifier: Apache-2.0
// Patterns against tensors: which axis of which operand every name of a pattern stands for, and its size. A pattern's
// labels are its names, its anonymous axes and the axes that an ellipsis stands for, each with one size however often it
// occurs. Sizes come from keywords, declared dims, plain axes, and then, until nothing changes, from groups with one
// unknown factor and windows with one unknown term. Invariant: in a solved pattern every label has a size, and every
// size that the pattern implies has been proved equal to the tensor's, or is required when dims are bound.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/elaborate/context.h"

namespace einc {

// `h = 8` beside a pattern.
struct GivenSize {
  Name name;
  Poly size;
  Span where;
};

struct PatternOperand {
  Type type;
  std::string text;  // "`x`", or "operand 2"
  Span where;
};

struct PatternLabel {
  Name name;  // empty: anonymous, or an ellipsis' nameless axis
  Poly size;
  Span where;  // where the pattern first says it
};

// One axis after groups are split: a unit never stands here. A window has the labels it opens into.
struct PatternLeaf {
  std::vector<int> labels;    // one, or a window's
  std::vector<Poly> strides;  // a window's; empty otherwise
  Poly size;                  // of the axis itself
  std::string text;           // "(y + ky)"
  bool is_window() const { return !strides.empty(); }
};

struct OperandLayout {
  std::vector<int> counts;  // leaves per axis of the operand
  std::vector<PatternLeaf> leaves;
};

struct OutputAxis {
  std::vector<int> labels;    // none: a unit axis; several: composed
  std::vector<Poly> strides;  // a window's: element i0, i1, ... is added to place sum strides[k]*ik
  std::string text;           // a window's: "(2*y + ky)"
  bool is_window() const { return !strides.empty(); }
};

struct SolvedPattern {
  std::vector<PatternLabel> labels;
  std::vector<OperandLayout> operands;
  std::vector<OutputAxis> output;

  std::vector<int> output_labels() const;
  Axis axis(int label) const { return {labels[static_cast<size_t>(label)].name, labels[static_cast<size_t>(label)].size}; }
  Axis output_axis(const OutputAxis& axis) const;  // "(h d)" when composed, "(2*y + ky)" for a window
  Poly size(int label) const { return labels[static_cast<size_t>(label)].size; }
};

// nullopt after a report. Names that are new in the scope are introduced there.
std::optional<SolvedPattern> solve_pattern(Context& context, const Pattern& pattern, const std::vector<PatternOperand>& operands,
                                           const std::vector<GivenSize>& given);

std::string count_of(size_t n, std::string_view thing);  // "1 axis", "2 axes", "3 tensors"

}  // namespace einc
