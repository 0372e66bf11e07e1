// SPDX-License-Identifier: Apache-2.0
#include "compiler/lower/attention_formula.h"

#include <algorithm>
#include <cmath>

#include "compiler/ir/map_value.h"
#include "runtime/base/float_format.h"

namespace einc {
namespace {

// Who uses each value: other values, or (kNoValue) the kernel otherwise.
std::vector<std::vector<ValueId>> users_of(const Kernel& kernel) {
  std::vector<std::vector<ValueId>> users(kernel.values.size());
  const auto add = [&](ValueId used, ValueId user) {
    if (used != kNoValue) users[used].push_back(user);
  };
  const auto add_index = [&](const Subscript& index, ValueId user) {
    for (const Subscript::Dynamic& d : index.dynamic) add(d.value, user);
  };
  const auto add_stores = [&](const std::vector<Store>& stores) {
    for (const Store& s : stores) add(s.value, kNoValue), add_index(s.index, kNoValue);
  };
  for (ValueId id = 0; id < kernel.values.size(); ++id) {
    for (const ValueId x : kernel.values[id].operands) add(x, id);
    add_index(kernel.values[id].index, id);
    for (const Range& guard : kernel.values[id].guards) add_index(guard.index, id);
  }
  for (const Accumulation& r : kernel.reductions) add(r.value, kNoValue), add(r.position, kNoValue);
  for (const Stage& stage : kernel.stages) add_stores(stage.stores);
  if (kernel.contraction) add(kernel.contraction->left, kNoValue), add(kernel.contraction->right, kNoValue);
  if (kernel.attention)
    for (const AttentionStep& step : kernel.attention->steps) add(step.left, kNoValue), add(step.right, kNoValue), add_stores(step.stores);
  return users;
}

}  // namespace

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

bool reads_only_probabilities(const Kernel& kernel, uint16_t max, uint16_t sum) {
  const std::vector<std::vector<ValueId>> users = users_of(kernel);
  const auto is_map = [&](ValueId id, MapFn fn) {
    return id != kNoValue && kernel.values[id].kind == ScalarKind::map && kernel.values[id].fn == fn;
  };
  const auto is_load = [&](ValueId id, uint16_t slot) {
    return kernel.values[id].kind == ScalarKind::load && kernel.values[id].slot == slot;
  };
  const auto is_weight = [&](ValueId id) {  // exp(x - max)
    if (!is_map(id, MapFn::exp)) return false;
    const ValueId difference = kernel.values[id].operands[0];
    return is_map(difference, MapFn::sub) && is_load(kernel.values[difference].operands[1], max);
  };
  const auto is_inverse = [&](ValueId id) { return is_map(id, MapFn::div) && is_load(kernel.values[id].operands[1], sum); };
  const auto is_probability = [&](ValueId id) {
    if (is_inverse(id)) return is_weight(kernel.values[id].operands[0]);
    if (!is_map(id, MapFn::mul)) return false;
    const auto& x = kernel.values[id].operands;
    return (is_weight(x[0]) && is_inverse(x[1])) || (is_weight(x[1]) && is_inverse(x[0]));
  };
  const auto all_users = [&](ValueId id, auto are) { return std::ranges::all_of(users[id], are); };
  for (ValueId id = 0; id < kernel.values.size(); ++id) {
    const auto subtracts = [&](ValueId user) { return is_map(user, MapFn::sub) && all_users(user, is_weight); };
    if (is_load(id, max) && !all_users(id, subtracts)) return false;
    if (is_load(id, sum) && !all_users(id, is_inverse)) return false;
    if (is_weight(id) && !all_users(id, is_probability)) return false;
    if (is_inverse(id) && !is_probability(id) && !all_users(id, is_probability)) return false;
  }
  return true;
}

}  // namespace einc
