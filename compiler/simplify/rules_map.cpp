// SPDX-License-Identifier: Apache-2.0
// Rewrite rules of elementwise functions. x, y stand for tensors, c, n for scalars known once the dims are ("numbers"). The
// rows give each rule before and after; tests/unit/simplify has a test row for each.
#include <algorithm>
#include <cmath>

#include "compiler/simplify/fold.h"
#include "compiler/simplify/rewrite.h"

namespace einc {
namespace {

// An operand and where its axes are in the result.
struct Operand {
  NodeId id;
  AxisList map;
};

Operand operand(const Node& node, int k) {
  return {node.operands[static_cast<size_t>(k)], node.as<MapAttr>().maps[static_cast<size_t>(k)]};
}

// In the dtype that the function gives, then cast: -x of integers beside a real 0 is still a real.
NodeId make(Rewriter& r, MapFn fn, std::initializer_list<Operand> operands, const Type& type) {
  std::vector<NodeId> ids;
  std::vector<AxisList> maps;
  std::vector<DType> dtypes;
  for (const Operand& o : operands) {
    ids.push_back(o.id);
    maps.push_back(o.map);
    dtypes.push_back(r.type(o.id).dtype);
  }
  const NodeId result = r.settle(r.build.map(fn, ids, maps, type.axes, Builder::map_dtype(fn, dtypes)));
  return r.type(result).dtype == type.dtype ? result : r.settle(r.build.cast(result, type.dtype));
}

Operand number_operand(NodeId id) { return {id, {}}; }
NodeId place(Rewriter& r, const Operand& o, const Type& type) { return r.place(o.id, o.map, type); }

// The positions of a map inside an operand, seen from outside.
Operand through(const Operand& inner, const AxisList& outer) {
  AxisList map;
  for (int axis : inner.map) map.push_back(outer[axis]);
  return {inner.id, map};
}

// The definition of operand k when it is an elementwise `fn` of the same dtype that may be looked through.
std::optional<Node> inner_map(Rewriter& r, const Node& node, int k, MapFn fn) {
  const Node& inner = r.at(node.operands[static_cast<size_t>(k)]);
  if (inner.op != Op::map || inner.as<MapAttr>().fn != fn || inner.origin.pinned || inner.type.dtype != node.type.dtype)
    return std::nullopt;
  return inner;
}

// --- any function

std::optional<NodeId> fold_constant(Rewriter& r, const Node& node) {
  if (!node.type.axes.empty()) return std::nullopt;
  std::vector<ScalarValue> values;
  for (NodeId id : node.operands) {
    const ScalarValue* value = r.constant(id);
    if (!value) return std::nullopt;
    values.push_back(*value);
  }
  const auto folded = fold_constants(node.as<MapAttr>().fn, values, node.type.dtype);
  return folded ? std::optional(r.settle(r.build.constant(*folded, node.type.dtype))) : std::nullopt;
}

bool is_movable_view(const Node& node) { return (node.op == Op::permute || node.op == Op::broadcast) && !node.origin.pinned; }

// Reads through permutes and broadcasts. Axes that no operand has any more are broadcast after the (smaller) function.
std::optional<NodeId> absorb_view(Rewriter& r, const Node& node) {
  if (std::none_of(node.operands.begin(), node.operands.end(), [&](NodeId id) { return is_movable_view(r.at(id)); })) return std::nullopt;
  std::vector<NodeId> ids;
  std::vector<AxisList> maps;
  std::vector<bool> covered(node.type.axes.size(), false);
  for (size_t k = 0; k < node.operands.size(); ++k) {
    Operand o = operand(node, static_cast<int>(k));
    for (const Node* view = &r.at(o.id); is_movable_view(*view); view = &r.at(o.id)) {
      AxisList map;
      if (view->op == Op::broadcast)
        map = view->as<BroadcastAttr>().map;
      else
        for (int i = 0; i < view->type.rank(); ++i) map.push_back(view->as<PermuteAttr>().order.find(i));
      o = through({view->operands[0], map}, o.map);
    }
    ids.push_back(o.id);
    maps.push_back(o.map);
    for (int axis : o.map) covered[static_cast<size_t>(axis)] = true;
  }
  AxisList kept;
  std::vector<Axis> axes;
  for (int i = 0; i < node.type.rank(); ++i)
    if (covered[static_cast<size_t>(i)]) {
      kept.push_back(i);
      axes.push_back(node.type.axis(i));
    }
  for (AxisList& map : maps)
    for (int i = 0; i < map.size(); ++i) map.set(i, kept.find(map[i]));
  const NodeId result = r.settle(r.build.map(node.as<MapAttr>().fn, ids, maps, axes, node.type.dtype));
  return r.place(result, kept, node.type);
}

// --- with neutral numbers

// x fn c = x for k the operand that is x.
std::optional<NodeId> neutral(Rewriter& r, const Node& node, int k, int64_t value) {
  return r.is_constant(node.operands[static_cast<size_t>(1 - k)], value) ? std::optional(place(r, operand(node, k), node.type))
                                                                         : std::nullopt;
}
std::optional<NodeId> either_neutral(Rewriter& r, const Node& node, int64_t value) {
  const auto first = neutral(r, node, 0, value);
  return first ? first : neutral(r, node, 1, value);
}
std::optional<NodeId> mul_one(Rewriter& r, const Node& node) { return either_neutral(r, node, 1); }
std::optional<NodeId> add_zero(Rewriter& r, const Node& node) { return either_neutral(r, node, 0); }
std::optional<NodeId> sub_zero(Rewriter& r, const Node& node) { return neutral(r, node, 0, 0); }
std::optional<NodeId> div_one(Rewriter& r, const Node& node) { return neutral(r, node, 0, 1); }

std::optional<NodeId> zero_sub(Rewriter& r, const Node& node) {
  return r.is_constant(node.operands[0], 0) ? std::optional(make(r, MapFn::neg, {operand(node, 1)}, node.type)) : std::nullopt;
}
std::optional<NodeId> mul_minus_one(Rewriter& r, const Node& node) {
  for (int k = 0; k < 2; ++k)
    if (r.is_constant(node.operands[static_cast<size_t>(1 - k)], -1)) return make(r, MapFn::neg, {operand(node, k)}, node.type);
  return std::nullopt;
}
// In the forward phase 0 * inf must stay nan; a gradient or an optimizer term known to be zero is none.
std::optional<NodeId> mul_zero(Rewriter& r, const Node& node) {
  if (node.origin.phase == Phase::forward || !(r.is_constant(node.operands[0], 0) || r.is_constant(node.operands[1], 0)))
    return std::nullopt;
  return r.zeros(node.type);
}

// --- chains of numbers: two factors become one

// Which operand is a number, the other being a tensor; -1 for none.
int number_place(Rewriter& r, const Node& node) {
  const bool first = r.is_number(node.operands[0]), second = r.is_number(node.operands[1]);
  return first == second ? -1 : first ? 0 : 1;
}

constexpr size_t kFactorTerms = 8;  // (m + 1)^k has k + 1: in a long chain each factor would be a larger one

// Whether a fn b is a factor to multiply by at once. Two known numbers: what they make is exact in the dims, of bounded size, and
// a normal f32, so that a value that the two steps carry past the range is not carried past it where they would not.
bool makes_factor(Rewriter& r, MapFn fn, NodeId a, NodeId b, DType dtype) {
  const ScalarValue *x = r.constant(a), *y = r.constant(b);
  if (!x || !y) return true;
  const ScalarValue both[] = {*x, *y};
  const auto value = fold_constants(fn, both, dtype);
  if (!value) return false;
  const Poly* exact = std::get_if<Poly>(&*value);
  if (exact && !exact->is_constant()) return exact->term_count() <= kFactorTerms;
  const double size = std::fabs(exact ? exact->as_rational()->to_double() : std::get<double>(*value));
  return size == 0 || (size >= 0x1p-126 && size < 0x1p128);
}

std::optional<NodeId> scale_chain(Rewriter& r, const Node& node, MapFn outer) {
  const int at = number_place(r, node);
  if (at < 0 || (outer == MapFn::div && at == 0)) return std::nullopt;
  const NodeId n = node.operands[static_cast<size_t>(at)];
  const AxisList& places = node.as<MapAttr>().maps[static_cast<size_t>(1 - at)];
  for (const MapFn fn : {MapFn::mul, MapFn::div}) {
    const auto inner = inner_map(r, node, 1 - at, fn);
    const int c_at = inner ? number_place(r, *inner) : -1;
    if (c_at < 0) continue;
    const NodeId c = inner->operands[static_cast<size_t>(c_at)];
    const Operand x = through(operand(*inner, 1 - c_at), places);
    const bool divides = fn == MapFn::div && c_at == 1;  // x / c
    const MapFn joined = !divides ? outer : outer == MapFn::mul ? MapFn::div : MapFn::mul;
    const NodeId first = divides && outer == MapFn::mul ? n : c, second = first == n ? c : n;
    if (!makes_factor(r, joined, first, second, node.type.dtype)) continue;
    const Operand factor = number_operand(r.map(joined, {first, second}));
    if (fn == MapFn::div && !divides) return make(r, MapFn::div, {factor, x}, node.type);
    return make(r, divides && outer == MapFn::div ? MapFn::div : MapFn::mul, {x, factor}, node.type);
  }
  return std::nullopt;
}
std::optional<NodeId> mul_chain(Rewriter& r, const Node& node) { return scale_chain(r, node, MapFn::mul); }
std::optional<NodeId> div_chain(Rewriter& r, const Node& node) { return scale_chain(r, node, MapFn::div); }

// --- signs

std::optional<Operand> negated(Rewriter& r, const Node& node, int k) {
  const auto inner = inner_map(r, node, k, MapFn::neg);
  return inner ? std::optional(through(operand(*inner, 0), operand(node, k).map)) : std::nullopt;
}
std::optional<NodeId> neg_neg(Rewriter& r, const Node& node) {
  const auto x = negated(r, node, 0);
  return x ? std::optional(place(r, *x, node.type)) : std::nullopt;
}
std::optional<NodeId> neg_sub(Rewriter& r, const Node& node) {
  const auto inner = inner_map(r, node, 0, MapFn::sub);
  if (!inner) return std::nullopt;
  const AxisList& places = node.as<MapAttr>().maps[0];
  return make(r, MapFn::sub, {through(operand(*inner, 1), places), through(operand(*inner, 0), places)}, node.type);
}
std::optional<NodeId> neg_scale(Rewriter& r, const Node& node) {
  const auto inner = inner_map(r, node, 0, MapFn::mul);
  const int at = inner ? number_place(r, *inner) : -1;
  if (at < 0) return std::nullopt;
  const NodeId minus = r.map(MapFn::neg, {inner->operands[static_cast<size_t>(at)]});
  return make(r, MapFn::mul, {through(operand(*inner, 1 - at), node.as<MapAttr>().maps[0]), number_operand(minus)}, node.type);
}
std::optional<NodeId> scale_neg(Rewriter& r, const Node& node) {
  const int at = number_place(r, node);
  const auto x = at >= 0 ? negated(r, node, 1 - at) : std::nullopt;
  if (!x) return std::nullopt;
  return make(r, MapFn::mul, {*x, number_operand(r.map(MapFn::neg, {node.operands[static_cast<size_t>(at)]}))}, node.type);
}
std::optional<NodeId> mul_neg_neg(Rewriter& r, const Node& node) {
  const auto x = negated(r, node, 0), y = negated(r, node, 1);
  return x && y ? std::optional(make(r, MapFn::mul, {*x, *y}, node.type)) : std::nullopt;
}
std::optional<NodeId> add_neg(Rewriter& r, const Node& node) {
  for (int k = 0; k < 2; ++k)
    if (const auto y = negated(r, node, k)) return make(r, MapFn::sub, {operand(node, 1 - k), *y}, node.type);
  return std::nullopt;
}
std::optional<NodeId> sub_neg(Rewriter& r, const Node& node) {
  const auto y = negated(r, node, 1);
  return y ? std::optional(make(r, MapFn::add, {operand(node, 0), *y}, node.type)) : std::nullopt;
}

// --- powers

std::optional<NodeId> power(Rewriter& r, const Node& node) {
  const ScalarValue* exponent = r.constant(node.operands[1]);
  if (!exponent || !is_floating(node.type.dtype)) return std::nullopt;
  const ScalarValue value = exact_value(*exponent);
  const auto is = [&](int64_t a, int64_t b) { return value == ScalarValue(Poly(Rational(a, b))); };
  const Operand x = operand(node, 0);
  const auto number = [&](int64_t n) { return number_operand(r.settle(r.build.constant(Poly(n), node.type.dtype))); };
  if (is(0, 1)) return place(r, number(1), node.type);
  if (is(1, 1)) return place(r, x, node.type);
  if (r.type(x.id).dtype != node.type.dtype) return std::nullopt;  // a square of integers is real: no overflow
  if (is(2, 1)) return make(r, MapFn::mul, {x, x}, node.type);
  if (is(1, 2)) return make(r, MapFn::sqrt, {x}, node.type);
  if (is(-1, 2)) return make(r, MapFn::rsqrt, {x}, node.type);
  if (is(-1, 1)) return make(r, MapFn::div, {number(1), x}, node.type);
  return std::nullopt;
}

// --- choices

std::optional<NodeId> where_constant(Rewriter& r, const Node& node) {
  const bool yes = r.is_constant(node.operands[0], 1), no = r.is_constant(node.operands[0], 0);
  return yes || no ? std::optional(place(r, operand(node, yes ? 1 : 2), node.type)) : std::nullopt;
}
// A step's index and a length that is left out: layers take `lengths = inf` for all steps. Of a real number it may be false: NaN and inf.
std::optional<NodeId> below_infinity(Rewriter& r, const Node& node) {
  const ScalarValue* bound = r.constant(node.operands[1]);
  const double* real = bound ? std::get_if<double>(bound) : nullptr;
  if (!real || *real != HUGE_VAL || is_floating(r.type(node.operands[0]).dtype)) return std::nullopt;
  return place(r, number_operand(r.settle(r.build.constant(Poly(1), DType::boolean))), node.type);
}
std::optional<NodeId> where_same(Rewriter& r, const Node& node) {
  if (node.operands[1] != node.operands[2] || node.as<MapAttr>().maps[1] != node.as<MapAttr>().maps[2]) return std::nullopt;
  return place(r, operand(node, 1), node.type);
}
std::optional<NodeId> same_operands(Rewriter& r, const Node& node) {
  if (node.operands[0] != node.operands[1] || node.as<MapAttr>().maps[0] != node.as<MapAttr>().maps[1]) return std::nullopt;
  return place(r, operand(node, 0), node.type);
}

constexpr RewriteRule kMapRules[] = {
    {"fold-constant", "f(c, n)", "its value", Op::map, fold_constant},
    {"absorb-view", "f(permute(x), broadcast(y))", "f(x, y) with other axis maps", Op::map, absorb_view},
    {"mul-one", "x * 1", "x", Op::map, mul_one, MapFn::mul},
    {"div-one", "x / 1", "x", Op::map, div_one, MapFn::div},
    {"add-zero", "x + 0", "x", Op::map, add_zero, MapFn::add},
    {"sub-zero", "x - 0", "x", Op::map, sub_zero, MapFn::sub},
    {"zero-sub", "0 - x", "-x", Op::map, zero_sub, MapFn::sub},
    {"mul-minus-one", "x * -1", "-x", Op::map, mul_minus_one, MapFn::mul},
    {"mul-zero", "x * 0 in a gradient or optimizer", "0", Op::map, mul_zero, MapFn::mul},
    {"mul-chain", "(x * c) * n, (x / c) * n, (c / x) * n", "x * (c n), x * (n / c), (c n) / x", Op::map, mul_chain, MapFn::mul},
    {"div-chain", "(x * c) / n, (x / c) / n, (c / x) / n", "x * (c / n), x / (c n), (c / n) / x", Op::map, div_chain, MapFn::div},
    {"neg-neg", "-(-x)", "x", Op::map, neg_neg, MapFn::neg},
    {"neg-sub", "-(x - y)", "y - x", Op::map, neg_sub, MapFn::neg},
    {"neg-scale", "-(x * c)", "x * (-c)", Op::map, neg_scale, MapFn::neg},
    {"scale-neg", "(-x) * c", "x * (-c)", Op::map, scale_neg, MapFn::mul},
    {"mul-neg-neg", "(-x) * (-y)", "x * y", Op::map, mul_neg_neg, MapFn::mul},
    {"add-neg", "x + (-y)", "x - y", Op::map, add_neg, MapFn::add},
    {"sub-neg", "x - (-y)", "x + y", Op::map, sub_neg, MapFn::sub},
    {"power", "x^0, x^1, x^2, x^(1/2), x^(-1/2), x^-1", "1, x, x*x, sqrt(x), rsqrt(x), 1/x", Op::map, power, MapFn::pow},
    {"where-constant", "where(true, x, y)", "x", Op::map, where_constant, MapFn::where},
    {"below-infinity", "i < inf of integers", "true", Op::map, below_infinity, MapFn::less},
    {"where-same", "where(c, x, x)", "x", Op::map, where_same, MapFn::where},
    {"max-same", "max(x, x)", "x", Op::map, same_operands, MapFn::maximum},
    {"min-same", "min(x, x)", "x", Op::map, same_operands, MapFn::minimum},
    {"and-same", "x and x", "x", Op::map, same_operands, MapFn::logical_and},
    {"or-same", "x or x", "x", Op::map, same_operands, MapFn::logical_or},
};

}  // namespace

std::span<const RewriteRule> map_rules() { return kMapRules; }

}  // namespace einc
