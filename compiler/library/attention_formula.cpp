// SPDX-License-Identifier: Apache-2.0
#include "compiler/library/attention_formula.h"

#include <cmath>

#include "compiler/ir/map_value.h"
#include "runtime/base/float_format.h"

namespace einc {

std::vector<const AttentionStep*> AttentionFormula::steps(AttentionPart part) const {
  std::vector<const AttentionStep*> found;
  for (const AttentionStep& step : kernel_.attention->steps)
    if (step.part == part) found.push_back(&step);
  return found;
}

bool AttentionFormula::is_map(ValueId id, MapFn fn) const {
  return kernel_.values[id].kind == ScalarKind::map && kernel_.values[id].fn == fn;
}

std::optional<double> AttentionFormula::constant(ValueId id) const {
  const Scalar& v = kernel_.values[id];
  if (!is_floating(v.dtype)) return std::nullopt;
  const auto number = v.kind == ScalarKind::constant ? std::optional(v.real) : computed(v);
  return number ? std::optional(round_to_format(v.dtype, *number)) : std::nullopt;
}

std::optional<double> AttentionFormula::computed(const Scalar& v) const {
  if (v.kind != ScalarKind::map && v.kind != ScalarKind::cast) return std::nullopt;
  std::vector<double> x;
  for (const ValueId operand : v.operands) {
    const auto number = constant(operand);
    if (!number) return std::nullopt;
    x.push_back(*number);
  }
  if (v.kind == ScalarKind::cast) return x[0];
  x.resize(3, 0);
  return map_value(v.fn, x[0], x[1], x[2]);
}

ValueId AttentionFormula::unrounded(ValueId id) const {
  for (;;) {
    const Scalar& v = kernel_.values[id];
    const bool rounds = v.dtype == DType::bf16 || v.dtype == DType::f16 || v.dtype == DType::f32;
    if (v.kind != ScalarKind::cast || !rounds) return id;
    id = v.operands[0];
  }
}

bool AttentionFormula::is_index(ValueId id, AxisId axis) const {
  const Scalar& v = kernel_.values[id];
  if (v.kind == ScalarKind::cast && !is_floating(v.dtype)) return is_index(v.operands[0], axis);
  return v.kind == ScalarKind::index && v.index == Subscript(Affine::of_axis(axis));
}

bool AttentionFormula::compares(ValueId id, MapFn fn, AxisId left, AxisId right) const {
  return is_map(id, fn) && is_index(kernel_.values[id].operands[0], left) && is_index(kernel_.values[id].operands[1], right);
}

AttentionFormula::Peeled AttentionFormula::peel(ValueId id, double fill) const {
  const AxisId row = kernel_.attention->row, key = kernel_.attention->key;
  const auto takes = [&](ValueId mask) {
    return compares(mask, MapFn::less_equal, key, row) || compares(mask, MapFn::greater_equal, row, key);
  };
  const auto leaves = [&](ValueId mask) { return compares(mask, MapFn::greater, key, row) || compares(mask, MapFn::less, row, key); };
  Peeled peeled;
  for (;;) {
    peeled.value = id = unrounded(id);
    const auto& x = kernel_.values[id].operands;
    if (is_map(id, MapFn::where)) {
      const bool first = takes(x[0]) && constant(x[2]) == fill, second = leaves(x[0]) && constant(x[1]) == fill;
      if (!first && !second) return peeled;
      peeled.causal = true;
      id = x[first ? 1 : 2];
    } else if (is_map(id, MapFn::mul) && (constant(x[0]) || constant(x[1]))) {
      const bool first = constant(x[0]).has_value();
      peeled.scale *= *constant(x[first ? 0 : 1]);
      id = x[first ? 1 : 0];
    } else if (is_map(id, MapFn::div) && constant(x[1])) {
      peeled.scale /= *constant(x[1]);
      id = x[0];
    } else {
      return peeled;
    }
  }
}

std::optional<uint16_t> AttentionFormula::reduction(ValueId id) const {
  const Scalar& v = kernel_.values[unrounded(id)];
  return v.kind == ScalarKind::reduction ? std::optional(v.slot) : std::nullopt;
}

std::optional<AttentionFormula::Probability> AttentionFormula::probability(ValueId id) const {
  id = unrounded(id);
  Probability p;
  if (is_map(id, MapFn::div)) {
    p.exponential = kernel_.values[id].operands[0];
    p.sum = kernel_.values[id].operands[1];
  } else {
    const auto inverse = other_factor(id, [&](ValueId x) { return is_map(x, MapFn::exp); });
    if (!inverse || !is_map(*inverse, MapFn::div) || constant(kernel_.values[*inverse].operands[0]) != 1.0) return std::nullopt;
    const auto& x = kernel_.values[id].operands;
    p.exponential = is_map(x[0], MapFn::exp) ? x[0] : x[1];
    p.sum = kernel_.values[*inverse].operands[1];
  }
  const auto numerator = exponential(p.exponential);
  if (!numerator) return std::nullopt;
  p.x = numerator->x, p.max = numerator->max;
  return p;
}

std::optional<AttentionFormula::Probability> AttentionFormula::exponential(ValueId id) const {
  id = unrounded(id);
  if (!is_map(id, MapFn::exp)) return std::nullopt;
  const ValueId difference = kernel_.values[id].operands[0];
  if (!is_map(difference, MapFn::sub)) return std::nullopt;
  const auto& x = kernel_.values[difference].operands;
  return Probability{x[0], id, x[1], kNoValue};
}

}  // namespace einc
