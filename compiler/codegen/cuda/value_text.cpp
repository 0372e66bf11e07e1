// SPDX-License-Identifier: Apache-2.0
#include "compiler/codegen/cuda/value_text.h"

#include <algorithm>
#include <cmath>

#include "runtime/base/check.h"

namespace einc {
namespace {

// A float that rounding to a smaller dtype leaves is written as it is.
std::string rounded_literal(double value, DType dtype) { return round_text(literal_of(value, register_dtype(dtype)), dtype); }

}  // namespace

ValueText::ValueText(const Kernel& kernel)
    : kernel_(kernel),
      axes_of_(axes_of_values(kernel)),
      axis_(kernel.axes.size()),
      results_(kernel.reductions.size()),
      places_(kernel.reductions.size()) {
  find_width();
  scopes_.emplace_back();
}

// 32 bits where every index, and the points of all loops together, stay below 2^31.
void ValueText::find_width() {
  constexpr double kLimit = 0x1p31;
  const auto check = [&](const Subscript& index) {
    double most = std::fabs(static_cast<double>(index.affine.constant));
    for (const Affine::Term& t : index.affine.terms)
      most += std::fabs(static_cast<double>(t.coefficient)) * static_cast<double>(kernel_.extent(t.axis));
    for (const Subscript::Dynamic& d : index.dynamic)
      if (is_index(d.value)) most += std::fabs(static_cast<double>(d.coefficient)) * most_of(d.value);
    if (most >= kLimit) wide_ = true;
  };
  for (const Scalar& v : kernel_.values) {
    check(v.index);
    for (const Range& g : v.guards) check(g.index);
  }
  for (const Stage& stage : kernel_.stages)
    for (const Store& s : stage.stores) check(s.index);
  if (kernel_.attention)
    for (const AttentionStep& step : kernel_.attention->steps)
      for (const Store& s : step.stores) check(s.index);
  double points = 1;
  for (AxisId a : kernel_.outer) points *= static_cast<double>(kernel_.extent(a));
  double most = points;
  for (const Stage& stage : kernel_.stages) {
    double trips = 1;
    for (AxisId a : stage.axes) trips *= static_cast<double>(kernel_.extent(a));
    most = std::max(most, trips);
  }
  for (const BufferUse& b : kernel_.buffers) most = std::max(most, static_cast<double>(b.count));
  if (most >= kLimit / 2) wide_ = true;
}

// Made of loops' indices alone, by dividing.
bool ValueText::is_index(ValueId id) const {
  const Scalar& v = kernel_.values[id];
  if (v.kind == ScalarKind::index) return v.index.dynamic.empty();
  return (v.kind == ScalarKind::quotient || v.kind == ScalarKind::remainder) && is_index(v.operands[0]);
}

// The largest magnitude that such a value has.
double ValueText::most_of(ValueId id) const {
  const Scalar& v = kernel_.values[id];
  if (v.kind == ScalarKind::remainder) return static_cast<double>(v.integer);
  if (v.kind == ScalarKind::quotient) return most_of(v.operands[0]) / static_cast<double>(v.integer);
  double most = std::fabs(static_cast<double>(v.index.affine.constant));
  for (const Affine::Term& t : v.index.affine.terms)
    most += std::fabs(static_cast<double>(t.coefficient)) * static_cast<double>(kernel_.extent(t.axis));
  return most;
}

void ValueText::find_tile(const std::vector<AxisId>& batch, TileCut rows, TileCut columns) {
  line("{0} rest = {0}(blockIdx.x);", index_type());
  line("const {} column0 = rest % {} * {};", index_type(), columns.tiles, columns.size);
  line("rest /= {};", columns.tiles);
  line("const {} row0 = rest % {} * {};", index_type(), rows.tiles, rows.size);
  if (batch.empty()) return;
  line("rest /= {};", rows.tiles);
  for (size_t k = batch.size(); k-- > 0;) {
    const AxisId a = batch[k];
    axis_[a] = fmt::format("a{}", a);
    line("const {} a{} = rest % {};", index_type(), a, kernel_.extent(a));
    if (k > 0) line("rest /= {};", kernel_.extent(a));
  }
}

void ValueText::open(const std::string& head) {
  line("{}{{", head.empty() ? "" : head + " ");
  ++depth_;
  scopes_.emplace_back();
}

void ValueText::close() {
  scopes_.pop_back();
  --depth_;
  line("}}");
}

std::string ValueText::flat(const Affine& affine) {
  std::string text;
  for (const Affine::Term& t : affine.terms) {
    EINC_CHECK(!axis_[t.axis].empty(), "axis a{} has no loop", t.axis);
    if (!text.empty()) text += " + ";
    text += t.coefficient == 1 ? axis_[t.axis] : fmt::format("{} * {}", literal(t.coefficient), axis_[t.axis]);
  }
  if (affine.constant != 0 || text.empty()) text += fmt::format("{}{}", text.empty() ? "" : " + ", literal(affine.constant));
  return text;
}

std::string ValueText::index(const Subscript& index) {
  std::string text = flat(index.affine);
  for (const Subscript::Dynamic& d : index.dynamic) {
    std::string x = is_index(d.value) ? fmt::format("{}({})", index_type(), value(d.value)) : as(d.value, DType::i64);
    text += d.coefficient == 1 ? " + " + x : fmt::format(" + {} * {}", literal(d.coefficient), x);
  }
  return text;
}

std::string ValueText::value(ValueId id) {
  const Scalar& v = kernel_.values[id];
  if (v.kind == ScalarKind::constant) {
    if (is_floating(v.dtype)) return rounded_literal(v.real, v.dtype);
    if (v.dtype == DType::boolean) return v.integer != 0 ? "true" : "false";
    return v.dtype == DType::i64 ? fmt::format("i64({})", literal(v.integer)) : fmt::format("i32({})", literal(v.integer));
  }
  for (size_t k = scopes_.size(); k-- > 0;)
    if (const auto found = scopes_[k].find(id); found != scopes_[k].end()) return found->second;
  const std::string text = expression(id), name = fmt::format("v{}", id);
  line("const {} {} = {};", register_type(v.dtype), name, text);
  scopes_.back()[id] = name;
  return name;
}

std::string ValueText::as(ValueId id, DType dtype) {
  const DType own = kernel_.values[id].dtype;
  if (own == dtype || register_dtype(own) == dtype) return value(id);
  return convert_text(value(id), register_dtype(own), dtype);
}

void ValueText::hoist(const std::vector<bool>& needed, uint64_t entered) {
  for (ValueId id = 0; id < kernel_.values.size(); ++id)
    if (needed[id] && (axes_of_[id] & ~entered) == 0 && kernel_.values[id].kind != ScalarKind::running &&
        kernel_.values[id].kind != ScalarKind::constant)
      value(id);
}

std::string ValueText::expression(ValueId id) {
  const Scalar& v = kernel_.values[id];
  switch (v.kind) {
    case ScalarKind::constant:
      break;
    case ScalarKind::index:
      return fmt::format("{}({})", register_type(v.dtype), index(v.index));
    case ScalarKind::quotient:
    case ScalarKind::remainder:
      return divided(v);
    case ScalarKind::load: {
      const std::string holds = guard(v);
      const std::string element = loaded(fmt::format("b{}[{}]", v.slot, index(v.index)), kernel_.buffers[v.slot].dtype);
      return holds.empty() ? element : fmt::format("{} ? {} : {}(0)", holds, element, register_type(v.dtype));
    }
    case ScalarKind::checked:
      return checked(id);
    case ScalarKind::map:
      return map(v);
    case ScalarKind::cast:
      return kernel_.values[v.operands[0]].dtype == v.dtype
                 ? value(v.operands[0])
                 : convert_text(value(v.operands[0]), register_dtype(kernel_.values[v.operands[0]].dtype), v.dtype);
    case ScalarKind::random:
      return random(v);
    case ScalarKind::in_range: {
      const std::string holds = guard(v);
      return holds.empty() ? "true" : holds;
    }
    case ScalarKind::reduction:
    case ScalarKind::running: {
      const Accumulation& r = kernel_.reductions[v.slot];
      EINC_CHECK(!results_[v.slot].empty(), "reduction r{} is used before it is made", v.slot);
      if (keeps_position(r)) return convert_text(places_[v.slot], DType::i64, v.dtype);
      return round_text(convert_text(results_[v.slot], folded_dtype(r), register_dtype(v.dtype)), v.dtype);
    }
  }
  EINC_CHECK(false, "a constant is a literal");
}

std::string ValueText::divided(const Scalar& v) {
  const std::string_view type = is_index(v.operands[0]) ? index_type() : "i64";
  return fmt::format("{}({}({}) {} {})", register_type(v.dtype), type, as(v.operands[0], DType::i64),
                     v.kind == ScalarKind::quotient ? '/' : '%', literal(v.integer));
}

std::string ValueText::guard(const Scalar& v) {
  std::string all;
  for (const Range& g : v.guards) {
    const std::string at = index(g.index);
    if (!all.empty()) all += " && ";
    all += fmt::format("({} >= {} && {} < {})", at, literal(g.lower), at, literal(g.upper));
  }
  return all.empty() || v.guards.size() == 1 ? all : "(" + all + ")";
}

std::string ValueText::checked(ValueId id) {
  const Scalar& v = kernel_.values[id];
  const std::string x = as(v.operands[0], DType::i64), holds = guard(v);
  const bool divides = v.integer == 0;
  const std::string fails = divides ? fmt::format("{} == 0", x) : fmt::format("u64({}) >= {}ull", x, v.integer);
  line("const bool bad{} = {}{};", id, fails, holds.empty() ? "" : " && " + holds);
  line("if (bad{}) index_fault(fault, launch, {}, {}, {});", id, v.slot, index(v.index), x);
  return fmt::format("bad{} ? i64({}) : i64({})", id, divides ? 1 : 0, x);
}

std::string ValueText::random(const Scalar& v) {
  const std::string arguments = fmt::format("keys[{}], *step, u64({})", v.slot, index(v.index));
  if (v.random == RandomKind::keep_mask) {
    const auto kept = static_cast<uint64_t>(std::clamp(std::ceil(v.real * 0x1p24), 0.0, 0x1p24));
    return round_text(convert_text(fmt::format("random_kept({}, {}u)", arguments, kept), DType::boolean, register_dtype(v.dtype)), v.dtype);
  }
  const DType drawn = v.random == RandomKind::bits ? DType::i64 : DType::f64;
  const std::string text = fmt::format("random_{}({})", to_string(v.random), arguments);
  return round_text(convert_text(text, drawn, register_dtype(v.dtype)), v.dtype);
}

void ValueText::store(const Store& store) {
  const DType dtype = kernel_.buffers[store.buffer].dtype;
  const std::string place = fmt::format("b{}[{}]", store.buffer, index(store.index));
  const std::string x = as(store.value, register_dtype(dtype));
  if (store.mode == StoreMode::set)
    line("{} = {};", place, stored(x, register_dtype(dtype), dtype));
  else
    line("{} = {};", place,
         stored(combine(fold_of(store.mode), register_dtype(dtype), loaded(place, dtype), x), register_dtype(dtype), dtype));
}

DType ValueText::folded_dtype(const Accumulation& r) const {
  return register_dtype(keeps_position(r) ? kernel_.values[r.value].dtype : r.dtype);
}

std::string ValueText::identity(Fold fold, DType dtype) const {
  const bool real = is_floating(dtype), boolean = dtype == DType::boolean;
  switch (fold) {
    case Fold::sum:
      return fmt::format("{}(0)", register_type(dtype));
    case Fold::prod:
      return fmt::format("{}(1)", register_type(dtype));
    case Fold::max:
    case Fold::logsumexp:
    case Fold::arg_max:
      if (real) return literal_of(-HUGE_VAL, dtype);
      return boolean ? "false" : dtype == DType::i64 ? literal(INT64_MIN) : "(-2147483647 - 1)";
    case Fold::min:
    case Fold::arg_min:
      if (real) return literal_of(HUGE_VAL, dtype);
      return boolean ? "true" : dtype == DType::i64 ? literal(INT64_MAX) : "2147483647";
    case Fold::any:
      return boolean ? "false" : "0";
    case Fold::all:
      return boolean ? "true" : "(-1)";
  }
  return "";
}

std::string ValueText::combine(Fold fold, DType dtype, const std::string& a, const std::string& x) const {
  switch (fold) {
    case Fold::sum:
      return dtype == DType::boolean ? fmt::format("({} != {})", a, x) : fmt::format("add({}, {})", a, x);
    case Fold::prod:
      return dtype == DType::boolean ? fmt::format("({} && {})", a, x) : fmt::format("mul({}, {})", a, x);
    case Fold::max:
      return fmt::format("larger({}, {})", a, x);
    case Fold::min:
      return fmt::format("smaller({}, {})", a, x);
    case Fold::any:
      return fmt::format("{}({} | {})", register_type(dtype), a, x);
    case Fold::all:
      return fmt::format("{}({} & {})", register_type(dtype), a, x);
    case Fold::logsumexp:
      return fmt::format("log_add({}, {})", a, x);
    case Fold::arg_max:
    case Fold::arg_min:
      break;
  }
  EINC_CHECK(false, "positions are kept by comparing");
}

void ValueText::accumulate(uint16_t reduction, const std::string& sum, const std::string& position) {
  const Accumulation& r = kernel_.reductions[reduction];
  const DType dtype = folded_dtype(r);
  if (keeps_position(r)) {
    const std::string x = as(r.value, dtype), place = as(r.position, DType::i64);
    line("if (comes_first_as_{}({}, i64({}), {}, {})) {} = {}, {} = {};", r.fold == Fold::arg_max ? "largest" : "least", x, place, sum,
         position, sum, x, position, place);
    return;
  }
  const Scalar& v = kernel_.values[r.value];
  const bool product = r.fold == Fold::sum && is_floating(dtype) && v.kind == ScalarKind::map && v.fn == MapFn::mul && v.dtype == r.dtype;
  if (!product) return line("{} = {};", sum, combine(r.fold, dtype, sum, as(r.value, dtype)));
  const std::string right = as(v.operands[1], r.dtype), left = as(v.operands[0], r.dtype);  // lines, in an order that C++ leaves open
  line("{} = add_product({}, {}, {});", sum, left, right, sum);
}

}  // namespace einc
