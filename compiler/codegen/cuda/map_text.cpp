// SPDX-License-Identifier: Apache-2.0
// One elementwise function as an expression.
#include "compiler/codegen/cuda/value_text.h"
#include "runtime/base/check.h"

namespace einc {
namespace {

DType common_dtype(DType a, DType b) {
  a = register_dtype(a), b = register_dtype(b);
  if (a == b) return a;
  if (is_floating(a) && is_floating(b)) return DType::f64;
  if (is_floating(a) || is_floating(b)) return a == DType::boolean || b == DType::boolean ? (is_floating(a) ? a : b) : DType::f64;
  return a == DType::i64 || b == DType::i64 ? DType::i64 : DType::i32;
}

std::string of_booleans(MapFn fn, const std::string& a, const std::string& b) {
  switch (fn) {
    case MapFn::add:
    case MapFn::sub:
      return fmt::format("({} != {})", a, b);
    case MapFn::mul:
    case MapFn::minimum:
    case MapFn::logical_and:
      return fmt::format("({} && {})", a, b);
    case MapFn::maximum:
    case MapFn::logical_or:
    case MapFn::relu:
    case MapFn::abs:
    case MapFn::sign:
    case MapFn::neg:
      return b.empty() ? a : fmt::format("({} || {})", a, b);
    case MapFn::pow:
      return fmt::format("({} || !{})", a, b);
    case MapFn::logical_not:
      return fmt::format("(!{})", a);
    case MapFn::div:
    case MapFn::equal:
    case MapFn::not_equal:
    case MapFn::less:
    case MapFn::less_equal:
    case MapFn::greater:
    case MapFn::greater_equal:
    case MapFn::where:
    case MapFn::exp:
    case MapFn::expm1:
    case MapFn::log:
    case MapFn::log1p:
    case MapFn::sqrt:
    case MapFn::rsqrt:
    case MapFn::sin:
    case MapFn::cos:
    case MapFn::tanh:
    case MapFn::sigmoid:
    case MapFn::erf:
    case MapFn::gelu:
    case MapFn::gelu_tanh:
    case MapFn::silu:
    case MapFn::softplus:
    case MapFn::floor_div:
    case MapFn::remainder:
    case MapFn::clamp:
    case MapFn::floor:
    case MapFn::ceil:
    case MapFn::round:
    case MapFn::trunc:
    case MapFn::tan:
    case MapFn::asin:
    case MapFn::acos:
    case MapFn::atan:
    case MapFn::atan2:
    case MapFn::sinh:
    case MapFn::cosh:
    case MapFn::erfc:
    case MapFn::erfinv:
    case MapFn::lgamma:
      break;
  }
  EINC_CHECK(false, "{} of booleans", to_string(fn));
}

std::string of_numbers(MapFn fn, DType dtype, const std::string& a, const std::string& b, const std::string& c) {
  const bool real = is_floating(dtype);
  switch (fn) {
    case MapFn::add:
      return real ? fmt::format("({} + {})", a, b) : fmt::format("add({}, {})", a, b);
    case MapFn::sub:
      return real ? fmt::format("({} - {})", a, b) : fmt::format("sub({}, {})", a, b);
    case MapFn::mul:
      return real ? fmt::format("({} * {})", a, b) : fmt::format("mul({}, {})", a, b);
    case MapFn::div:
      return fmt::format("({} / {})", a, b);
    case MapFn::pow:
      return fmt::format("{}({}, {})", real ? "pow_of" : "whole_power", a, b);
    case MapFn::minimum:
      return fmt::format("smaller({}, {})", a, b);
    case MapFn::maximum:
      return fmt::format("larger({}, {})", a, b);
    case MapFn::floor_div:
      return fmt::format("floor_divide({}, {})", a, b);
    case MapFn::remainder:
      return fmt::format("floor_remainder({}, {})", a, b);
    case MapFn::clamp:
      return fmt::format("smaller(larger({}, {}), {})", a, b, c);
    case MapFn::atan2:
      return fmt::format("atan2_of({}, {})", a, b);
    case MapFn::neg:
      return real ? fmt::format("(-{})", a) : fmt::format("sub({}(0), {})", register_type(dtype), a);
    case MapFn::abs:
    case MapFn::sign:
    case MapFn::relu:
    case MapFn::exp:
    case MapFn::expm1:
    case MapFn::log:
    case MapFn::log1p:
    case MapFn::sqrt:
    case MapFn::rsqrt:
    case MapFn::sin:
    case MapFn::cos:
    case MapFn::tanh:
    case MapFn::sigmoid:
    case MapFn::erf:
    case MapFn::gelu:
    case MapFn::gelu_tanh:
    case MapFn::silu:
    case MapFn::softplus:
    case MapFn::floor:
    case MapFn::ceil:
    case MapFn::round:
    case MapFn::trunc:
    case MapFn::tan:
    case MapFn::asin:
    case MapFn::acos:
    case MapFn::atan:
    case MapFn::sinh:
    case MapFn::cosh:
    case MapFn::erfc:
    case MapFn::erfinv:
    case MapFn::lgamma:
      return fmt::format("{}_of({})", to_string(fn), a);
    case MapFn::equal:
    case MapFn::not_equal:
    case MapFn::less:
    case MapFn::less_equal:
    case MapFn::greater:
    case MapFn::greater_equal:
    case MapFn::logical_and:
    case MapFn::logical_or:
    case MapFn::logical_not:
    case MapFn::where:
      break;
  }
  EINC_CHECK(false, "{} of numbers", to_string(fn));
}

std::string_view comparison(MapFn fn) {
  switch (fn) {
    case MapFn::equal:
      return "==";
    case MapFn::not_equal:
      return "!=";
    case MapFn::less:
      return "<";
    case MapFn::less_equal:
      return "<=";
    case MapFn::greater:
      return ">";
    case MapFn::greater_equal:
      return ">=";
    case MapFn::add:
    case MapFn::sub:
    case MapFn::mul:
    case MapFn::div:
    case MapFn::pow:
    case MapFn::minimum:
    case MapFn::maximum:
    case MapFn::logical_and:
    case MapFn::logical_or:
    case MapFn::logical_not:
    case MapFn::where:
    case MapFn::neg:
    case MapFn::abs:
    case MapFn::sign:
    case MapFn::relu:
    case MapFn::exp:
    case MapFn::expm1:
    case MapFn::log:
    case MapFn::log1p:
    case MapFn::sqrt:
    case MapFn::rsqrt:
    case MapFn::sin:
    case MapFn::cos:
    case MapFn::tanh:
    case MapFn::sigmoid:
    case MapFn::erf:
    case MapFn::gelu:
    case MapFn::gelu_tanh:
    case MapFn::silu:
    case MapFn::softplus:
    case MapFn::floor_div:
    case MapFn::remainder:
    case MapFn::clamp:
    case MapFn::floor:
    case MapFn::ceil:
    case MapFn::round:
    case MapFn::trunc:
    case MapFn::tan:
    case MapFn::asin:
    case MapFn::acos:
    case MapFn::atan:
    case MapFn::atan2:
    case MapFn::sinh:
    case MapFn::cosh:
    case MapFn::erfc:
    case MapFn::erfinv:
    case MapFn::lgamma:
      break;
  }
  EINC_CHECK(false, "{} compares nothing", to_string(fn));
}

}  // namespace

// e^x as 2^(x log2(e)); of a difference one multiplication and addition, where what is subtracted is often the same for a row. A power of
// two that x was scaled by is part of the factor.
std::string ValueText::short_exp(const Scalar& v) {
  const Scalar& x = kernel_.values[v.operands[0]];
  if (x.kind != ScalarKind::map || x.fn != MapFn::sub || x.dtype != DType::f32)
    return fmt::format("exp2_short({} * kLog2E)", as(v.operands[0], DType::f32));
  const auto scaled = scaled_value(kernel_, x.operands[0]);
  const std::string from = scaled ? unscaled(*scaled) : as(x.operands[0], DType::f32), taken = as(x.operands[1], DType::f32);
  return fmt::format("exp2_short(add_product({}, {}, -({} * kLog2E)))", from, log2_e(scaled ? scaled->factor : 1), taken);
}

std::string ValueText::unscaled(const ScaledValue& scaled) {
  if (scaled.mask == kNoValue) return as(scaled.value, DType::f32);
  const std::string no = as(scaled.otherwise, DType::f32), yes = as(scaled.value, DType::f32);  // lines, as in map()
  return fmt::format("({} ? {} : {})", as(scaled.mask, DType::boolean), yes, no);
}

std::string ValueText::log2_e(double factor) {
  return factor == 1 ? "kLog2E" : fmt::format("(kLog2E * {})", literal_of(factor, DType::f32));
}

std::string ValueText::map(const Scalar& v) {
  DType operand = register_dtype(v.dtype);
  if (is_comparison(v.fn)) operand = common_dtype(kernel_.values[v.operands[0]].dtype, kernel_.values[v.operands[1]].dtype);
  if (is_logical(v.fn)) operand = DType::boolean;
  if (v.fn == MapFn::where) {
    const std::string no = as(v.operands[2], operand), yes = as(v.operands[1], operand);  // lines, in an order that C++ leaves open
    const std::string chosen = fmt::format("{} ? {} : {}", as(v.operands[0], DType::boolean), yes, no);
    return chooses_wider(kernel_, v) ? round_text("(" + chosen + ")", v.dtype) : chosen;
  }
  if (v.fn == MapFn::exp && operand == DType::f32 && short_exp_) return round_text(short_exp(v), v.dtype);
  const std::string a = as(v.operands[0], operand), b = v.operands.size() > 1 ? as(v.operands[1], operand) : "";
  const std::string c = v.operands.size() > 2 ? as(v.operands[2], operand) : "";
  if (is_comparison(v.fn)) return fmt::format("({} {} {})", a, comparison(v.fn), b);
  if (operand == DType::boolean) return of_booleans(v.fn, a, b);
  return round_text(of_numbers(v.fn, operand, a, b, c), v.dtype);
}

}  // namespace einc
