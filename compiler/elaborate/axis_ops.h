// SPDX-License-Identifier: Apache-2.0
// Handlers of the built-ins that work along named axes, by file; axis_ops.cpp holds their table.
#pragma once
#include "compiler/elaborate/context.h"

namespace einc {

// The dtype of positions along an axis: i32, or i64 where the size in use needs it.
DType index_dtype(Context& context, const Poly& size);

// First argument and one axis of it, which argument `place` names.
struct AlongAxis {
  NodeId x;
  int axis;
};
std::optional<AlongAxis> read_along_axis(Context& context, const std::vector<const ast::Argument*>& arguments, size_t place);

// arrange.cpp
std::optional<Value> call_concat(Context& context, const ast::Call& call);
std::optional<Value> call_stack(Context& context, const ast::Call& call);
std::optional<Value> call_flip(Context& context, const ast::Call& call);
// pad.cpp
std::optional<Value> call_pad(Context& context, const ast::Call& call);
// cross_entropy.cpp
std::optional<Value> call_cross_entropy(Context& context, const ast::Call& call);
// draws.cpp
std::optional<Value> call_random(Context& context, const ast::Call& call);  // normal, uniform
std::optional<Value> call_bernoulli(Context& context, const ast::Call& call);
std::optional<Value> call_randint(Context& context, const ast::Call& call);
std::optional<Value> call_categorical(Context& context, const ast::Call& call);
std::optional<Value> call_permutation(Context& context, const ast::Call& call);
// generate.cpp
std::optional<Value> call_iota(Context& context, const ast::Call& call);
std::optional<Value> call_one_hot(Context& context, const ast::Call& call);
std::optional<Value> call_dropout(Context& context, const ast::Call& call);
std::optional<Value> call_filled(Context& context, const ast::Call& call);  // zeros, ones, full
// orders.cpp
std::optional<Value> call_cumulate(Context& context, const ast::Call& call);  // cumsum, cumprod, cummax, cummin, logcumsumexp
std::optional<Value> call_top_k(Context& context, const ast::Call& call);     // top_k, top_k_index
std::optional<Value> call_sort(Context& context, const ast::Call& call);      // sort, argsort
// The positions along an axis in ascending (min) or descending (max) order of the elements there.
NodeId build_argsort(Context& context, NodeId x, int axis, ReduceFn order);
// segments.cpp
std::optional<Value> call_segment(Context& context, const ast::Call& call);  // segment_sum, _mean, _max, _min

}  // namespace einc
