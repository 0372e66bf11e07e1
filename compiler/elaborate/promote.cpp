// SPDX-License-Identifier: Apache-2.0
#include "compiler/elaborate/promote.h"

#include "compiler/elaborate/numbers.h"

namespace einc {
namespace {

constexpr int kWeakDepth = 8;  // of scalar arithmetic that is still looked through

// A scalar computed from constants alone, in a dtype still to be chosen.
bool is_weak_scalar(const Graph& graph, NodeId id, int depth = 0) {
  const Node& node = graph[id];
  if (node.type.rank() != 0 || node.type.dtype != DType::real || depth > kWeakDepth) return false;
  if (node.op == Op::constant) return true;
  if (node.op != Op::map) return false;
  for (NodeId operand : node.operands)
    if (!is_weak_scalar(graph, operand, depth + 1)) return false;
  return true;
}

// The same arithmetic in another dtype, so that it is not rounded on the way to a wider one.
NodeId recompute(Builder& build, NodeId id, DType dtype) {
  const Node node = build.graph()[id];
  if (node.op == Op::constant) return build.constant(node.as<ConstantAttr>().value, dtype);
  std::vector<NodeId> operands;
  std::vector<AxisList> maps;
  for (NodeId operand : node.operands) {
    operands.push_back(recompute(build, operand, dtype));
    maps.emplace_back();
  }
  return build.map(node.as<MapAttr>().fn, operands, maps, {}, dtype);
}

NodeId take_dtype(Builder& build, NodeId weak, DType dtype) {
  if (dtype == DType::real || !is_floating(dtype)) return weak;
  return dtype == DType::f64 ? recompute(build, weak, dtype) : convert(build, weak, dtype);
}

}  // namespace

DType weak_dtype(const Number& number, DType beside) {
  if (!number.integer) return is_floating(beside) ? beside : DType::real;
  return beside == DType::boolean ? DType::i32 : beside;
}

std::optional<NodeId> number_to_tensor(Context& context, const Number& number, DType dtype, Span span) {
  if (representable(number, dtype)) return context.build().constant(number.value, dtype);
  auto report = context.diagnostics().report(Code::number_not_in_dtype, span, describe(number), to_string(dtype));
  const DTypeInfo& format = info(dtype);
  if (is_floating(dtype))
    report.hint("the largest {} value is {}: cast the tensor to a wider dtype first", format.name, format.largest);
  else if (dtype == DType::i64)
    report.hint("no integer dtype is wider: write a real number");
  else
    report.hint("cast the tensor to i32 or i64 first");
  return std::nullopt;
}

std::optional<NodeId> to_tensor(Context& context, const Value& value, DType beside, Span span) {
  if (const NodeId* node = std::get_if<NodeId>(&value.data)) return *node;
  if (const Number* number = std::get_if<Number>(&value.data)) return number_to_tensor(context, *number, weak_dtype(*number, beside), span);
  context.diagnostics().report(Code::tensor_expected, span, "several values");
  return std::nullopt;
}

std::optional<NodeId> to_tensor_alone(Context& context, const Value& value, Span span) {
  const Number* number = std::get_if<Number>(&value.data);
  if (number == nullptr || !number->integer) return to_tensor(context, value, DType::real, span);
  const Poly* poly = std::get_if<Poly>(&number->value);
  const auto in_use = poly == nullptr ? std::nullopt : poly->evaluate(context.order_values());
  const bool is_wide = in_use && !representable(Number{Poly(*in_use), true}, DType::i32);
  return number_to_tensor(context, *number, is_wide ? DType::i64 : DType::i32, span);
}

NodeId convert(Builder& build, NodeId x, DType dtype) { return build.type(x).dtype == dtype ? x : build.cast(x, dtype); }

NodeId to_floating(Builder& build, NodeId x) { return is_floating(build.type(x).dtype) ? x : build.cast(x, DType::real); }

std::optional<Promoted> promote_operands(Context& context, std::span<const Value> operands, std::span<const Span> spans, DType weak_only) {
  Builder& build = context.build();
  std::optional<DType> strong;
  bool all_fine = true, any_weak_scalar = false, all_integer = true;
  std::vector<bool> weak(operands.size(), false);
  for (size_t k = 0; k < operands.size(); ++k) {
    if (const NodeId* node = std::get_if<NodeId>(&operands[k].data)) {
      weak[k] = is_weak_scalar(build.graph(), *node);
      any_weak_scalar = any_weak_scalar || weak[k];
      if (!weak[k]) strong = strong ? promote(*strong, build.type(*node).dtype) : build.type(*node).dtype;
    } else if (const Number* number = std::get_if<Number>(&operands[k].data)) {
      all_integer = all_integer && number->integer;
    } else {
      context.diagnostics().report(Code::tensor_expected, spans[k], "several values");
      all_fine = false;
    }
  }
  if (!all_fine) return std::nullopt;

  Promoted result;
  result.dtype = strong ? *strong : any_weak_scalar ? DType::real : weak_only;
  // One real number among integers makes all of them real.
  if (strong && (any_weak_scalar || !all_integer) && !is_floating(result.dtype)) result.dtype = DType::real;
  for (size_t k = 0; k < operands.size(); ++k) {
    if (const Number* number = std::get_if<Number>(&operands[k].data)) {
      const auto node = number_to_tensor(context, *number, weak_dtype(*number, result.dtype), spans[k]);
      all_fine = all_fine && node;
      result.nodes.push_back(node.value_or(NodeId{}));
      if (node) result.dtype = promote(result.dtype, build.type(*node).dtype);
    } else {
      const NodeId node = std::get<NodeId>(operands[k].data);
      result.nodes.push_back(weak[k] ? take_dtype(build, node, result.dtype) : node);
    }
  }
  if (!all_fine) return std::nullopt;
  return result;
}

}  // namespace einc
