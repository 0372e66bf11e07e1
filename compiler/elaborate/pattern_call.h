// SPDX-License-Identifier: Apache-2.0
// The arguments of a call such as rearrange(x, "a b -> b a", h=8), taken apart: tensors, the pattern string, words after
// it, sizes by keyword. Everything that is wrong with them is reported here, tensors' own errors included.
#pragma once
#include <optional>
#include <string>
#include <vector>

#include "compiler/elaborate/pattern_solver.h"

namespace einc {

struct PatternCall {
  std::vector<NodeId> tensors;
  std::vector<PatternOperand> operands;  // of the same tensors
  const ast::String* text = nullptr;
  const Pattern* pattern = nullptr;
  std::vector<const ast::Expr*> after;  // positional arguments behind the pattern
  std::vector<GivenSize> given;
  Span span;

  std::string term_text(const PatternTerm& term) const;  // as written
};

// Positional arguments before the pattern that are not to be evaluated as tensors are the caller's: `tensor_count` of the
// first ones are (all of them when it is npos).
inline constexpr size_t kAllArguments = static_cast<size_t>(-1);
std::optional<PatternCall> read_pattern_call(Context& context, const ast::Call& call, PatternOp op, size_t tensor_count = kAllArguments);

PatternOperand describe_operand(Context& context, NodeId tensor, const ast::Expr& expr, size_t index);

// pack.cpp
std::optional<Value> elaborate_pack(Context& context, const ast::Call& call);
std::optional<Value> elaborate_unpack(Context& context, const ast::Call& call);
std::optional<Value> elaborate_like(Context& context, const ast::Call& call);

}  // namespace einc
