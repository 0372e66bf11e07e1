// SPDX-License-Identifier: Apache-2.0
// Dtypes of elementwise operands. Numbers (and scalars computed from numbers alone, such as rsqrt(head)) are weak: they
// take the dtype of the tensors beside them, an integer becoming real beside reals. Tensors promote among themselves.
#pragma once
#include <span>
#include <vector>

#include "compiler/elaborate/context.h"

namespace einc {

// The dtype a number takes beside tensors of dtype `beside`: real numbers make integers real, and bool makes integers i32.
DType weak_dtype(const Number& number, DType beside);

// A rank-0 constant of the dtype; reports a value that the dtype cannot hold.
std::optional<NodeId> number_to_tensor(Context& context, const Number& number, DType dtype, Span span);

// x in that dtype: a cast, unless it has it already.
NodeId convert(Builder& build, NodeId x, DType dtype);
// Floating x: integers and bools become real.
NodeId to_floating(Builder& build, NodeId x);

// Operands of one op in the graph, numbers as constants of the promoted dtype. `weak_only` is what numbers become when no
// tensor stands beside them.
struct Promoted {
  std::vector<NodeId> nodes;
  DType dtype = DType::real;
};
// Reports tuples and values a dtype cannot hold; nullopt then.
std::optional<Promoted> promote_operands(Context& context, std::span<const Value> operands, std::span<const Span> spans, DType weak_only);

}  // namespace einc
