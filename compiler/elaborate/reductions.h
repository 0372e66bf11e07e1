// SPDX-License-Identifier: Apache-2.0
// Reductions over named axes. Integers are summed and multiplied in i64, means and variances are real; narrow floats are
// averaged in f32 and rounded once at the end. Also what the pattern op `reduce` does.
#pragma once
#include <optional>
#include <span>
#include <string_view>
#include <vector>

#include "compiler/elaborate/context.h"

namespace einc {

enum class Reduction : uint8_t { sum, mean, max, min, prod, var, any, all, logsumexp, std, norm };

std::optional<Reduction> parse_reduction(std::string_view name);
std::vector<std::string_view> reduction_names();

// x without `axes`. any and all take what is not 0 as true.
NodeId build_reduction(Builder& build, Reduction reduction, NodeId x, const AxisList& axes);

// The same for a call's first value and the arguments that name axes; none means all axes.
std::optional<Value> reduce_value(Context& context, Reduction reduction, const Value& x, std::span<const ast::Argument* const> axes,
                                  Span whole);

// Narrow floats (bf16, f16, fp8) go to f32, integers to real: what sums of exponentials and squares are computed in.
NodeId widen(Builder& build, NodeId x);
// Back to `dtype` if it is floating.
NodeId narrow(Builder& build, NodeId x, DType dtype);

}  // namespace einc
