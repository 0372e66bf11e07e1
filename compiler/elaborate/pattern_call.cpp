// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/pattern_call.h"

#include <algorithm>

namespace einc {

namespace {

std::string_view usage(PatternOp op) {
  switch (op) {
    case PatternOp::einsum:
      return "tensors, then a pattern: einsum(a, b, \"i j, j k -> i k\")";
    case PatternOp::rearrange:
      return "a tensor and a pattern: rearrange(x, \"a b -> b a\")";
    case PatternOp::reduce:
      return "a tensor, a pattern and a reduction: reduce(x, \"a b -> a\", \"mean\")";
    case PatternOp::repeat:
      return "a tensor, a pattern and sizes: repeat(x, \"a -> a copies\", copies=2)";
    case PatternOp::pack:
      return "tensors, then a pattern with a star: pack(a, b, \"* c\")";
    case PatternOp::unpack:
      return "a tensor, the pieces' shapes, and a pattern: unpack(p, like(a), like(b), \"* c\")";
  }
  return {};
}

}  // namespace

std::string PatternCall::term_text(const PatternTerm& term) const {
  const size_t begin = term.span.begin - text->contents.begin;
  std::string_view all = text->value;
  all = begin <= all.size() ? all.substr(begin, term.span.size()) : std::string_view();
  while (!all.empty() && all.front() == ' ') all.remove_prefix(1);
  while (!all.empty() && all.back() == ' ') all.remove_suffix(1);
  return std::string(all);
}

PatternOperand describe_operand(Context& context, NodeId tensor, const ast::Expr& expr, size_t index) {
  const auto* name = expr.as<ast::NameRef>();
  return {context.build().type(tensor), name != nullptr ? fmt::format("`{}`", name->name.str()) : fmt::format("operand {}", index + 1),
          expr.span};
}

std::optional<PatternCall> read_pattern_call(Context& context, const ast::Call& call, PatternOp op, size_t tensor_count) {
  PatternCall result;
  result.span = call.callee.span;
  bool failed = false;
  size_t read = 0;  // tensors, with those that failed: what stands behind them is none
  for (const ast::Argument& argument : call.arguments) {
    const ast::Expr& value = *argument.value;
    result.span = join(result.span, argument.span);
    if (argument.name) {
      const auto size = context.evaluate_size(value);
      if (size)
        result.given.push_back({argument.name.name, *size, argument.span});
      else
        failed = true;
    } else if (result.text != nullptr) {
      result.after.push_back(&value);
    } else if (const auto* text = value.as<ast::String>()) {
      result.text = text;
    } else if (read < tensor_count) {
      ++read;
      const auto tensor = context.evaluate_tensor(value);
      if (tensor) {
        result.operands.push_back(describe_operand(context, *tensor, value, result.tensors.size()));
        result.tensors.push_back(*tensor);
      } else {
        failed = true;
      }
    }
  }
  if (result.text != nullptr && result.text->pattern == nullptr) return std::nullopt;  // the parser has said why
  result.pattern = result.text != nullptr ? result.text->pattern.get() : nullptr;
  const size_t wanted_after = op == PatternOp::reduce ? 1 : 0;
  if (failed) return std::nullopt;
  if (result.text == nullptr || result.tensors.empty() || result.after.size() != wanted_after) {
    auto report = context.diagnostics().report(Code::pattern_call, result.span, to_string(op), usage(op));
    if (result.text != nullptr && result.tensors.empty() && !result.after.empty()) report.hint("the pattern comes after the tensors");
    return std::nullopt;
  }
  return result;
}

}  // namespace einc
