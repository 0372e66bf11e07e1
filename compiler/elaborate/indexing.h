// SPDX-License-Identifier: Apache-2.0
// `x[axis = position]`: picks and slices at positions known while compiling are views; a tensor of positions gathers, or
// scatters when a state is written. All items of one bracket mean the tensor as it was before the bracket.
#pragma once
#include <optional>
#include <span>
#include <vector>

#include "compiler/elaborate/context.h"

namespace einc {

// What indexing axis `axis` of the table by the ids gives: the axis is replaced by those of ids that the table lacks; axes
// that both have by name are aligned. Axes in `indexed` are replaced too (now or later) and so align with nothing.
struct GatherPlan {
  GatherAttr attr;
  std::vector<Axis> out_axes;
};
std::optional<GatherPlan> plan_gather(Context& context, const Type& table, int axis, const Type& ids, std::span<const int> indexed,
                                      Span span);

// Reports ids that are no integers.
bool check_ids(Context& context, NodeId ids, Span span);

// s[items] <- value: the state with the value written at those positions, cast to its dtype.
std::optional<NodeId> write_indexed(Context& context, NodeId state, std::span<const ast::IndexItem> items, NodeId value, Span value_span);

// `x` with exactly these axes, in their order: permuted, and broadcast over those it lacks. Reports an axis that is not among
// them, or is there twice or with another size.
std::optional<NodeId> fit_axes(Context& context, NodeId x, const std::vector<Axis>& axes, Span span);

}  // namespace einc
