// Handlers of the built-ins that work along named axes, by file; axis_ops.cpp holds their table.
#pragma once
#include "compiler/elaborate/context.h"

namespace einc {

// The dtype of positions along an axis: i32, or i64 where the size in use needs it.
DType index_dtype(Context& context, const Poly& size);

// arrange.cpp
std::optional<Value> call_concat(Context& context, const ast::Call& call);
std::optional<Value> call_stack(Context& context, const ast::Call& call);
std::optional<Value> call_pad(Context& context, const ast::Call& call);
// generate.cpp
std::optional<Value> call_iota(Context& context, const ast::Call& call);
std::optional<Value> call_one_hot(Context& context, const ast::Call& call);
std::optional<Value> call_dropout(Context& context, const ast::Call& call);
std::optional<Value> call_random(Context& context, const ast::Call& call);  // normal, uniform

}  // namespace einc
