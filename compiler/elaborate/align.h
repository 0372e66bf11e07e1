// SPDX-License-Identifier: Apache-2.0
// Aligning operands by axis name. Axes of one name are one axis and have one size; an axis that an operand lacks broadcasts
// over it. Lists that are identical align in order, whatever their names, so tensors with repeated or nameless axes can
// still be added to themselves. Pure: the caller turns a problem into a diagnostic.
#pragma once
#include <optional>
#include <span>
#include <string>
#include <utility>
#include <variant>
#include <vector>

#include "compiler/ir/axis_list.h"
#include "compiler/ir/type.h"

namespace einc {

// The result's axes, and for each operand the position of its axes among them: what Builder::map takes.
struct Alignment {
  std::vector<Axis> axes;
  std::vector<AxisList> maps;
};

enum class AlignFault : uint8_t { sizes_differ, repeated, nameless, too_many_axes };

// Axis `axis` of operand `operand` cannot be aligned; for sizes_differ, with axis `other_axis` of `other_operand`.
// For too_many_axes, `axis` is the number of axes.
struct AlignProblem {
  AlignFault fault;
  size_t operand = 0;
  int axis = 0;
  size_t other_operand = 0;
  int other_axis = 0;
};

// The result has the order of the first operand that holds all axes, else the first operand's axes and then new ones in
// order of appearance. Operands without axes never matter.
std::variant<Alignment, AlignProblem> align(std::span<const std::vector<Axis>> operands);

// Those of `axes` whose names `others` lacks.
std::vector<Axis> missing_from(const std::vector<Axis>& others, const std::vector<Axis>& axes);
// An axis of each list that the other lacks, of equal sizes: probably one axis under two names.
std::optional<std::pair<Axis, Axis>> same_size(const std::vector<Axis>& left, const std::vector<Axis>& right, const Bindings& values);

// A plain name for each axis, different from those of the others: `b`, and `b_2` for a second; axis `rename` gets a new one.
std::vector<std::string> distinct_names(std::span<const Axis> axes, int rename = -1);
// "[b c_2]": axis names to write in an annotation so that every axis has a name of its own; axis `rename` gets a new one.
std::string suggest_annotation(std::span<const Axis> axes, int rename = -1);

}  // namespace einc
